# SPDX-License-Identifier: Apache-2.0
"""F07, F08: templates that set traps for whoever makes a sandbox of them.

They are laid out by hand, so that nothing an import refuses or drops keeps the
spawner from meeting them.
"""
import os
import shutil
import stat
import struct

PROGRAM = '/cuvette-probe'


class Template:
    """DATA/templates/DIGEST/rootfs with the least that a template has, and the probe's program."""

    def __init__(self, box, around, number):
        self.box = box
        self.data = os.path.join(around.scratch, f'data-{number}')
        digest = f'{number:064x}'
        home = os.path.join(self.data, 'templates', digest)
        self.root = os.path.join(home, 'rootfs')
        for folder in ('dev', 'etc', 'home/user', 'proc', 'sys', 'tmp'):
            os.makedirs(os.path.join(self.root, folder))
        os.chmod(os.path.join(self.root, 'tmp'), 0o1777)
        os.chown(os.path.join(self.root, 'home/user'), 1000, 1000)
        self.write('etc/passwd', 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n')
        self.write('etc/group', 'root:x:0:\nuser:x:1000:\n')
        shutil.copy(box.program, self.path(PROGRAM))
        os.chmod(self.path(PROGRAM), 0o755)
        with open(os.path.join(home, 'meta.json'), 'w', encoding='ascii') as f:
            f.write('{}\n')
        os.makedirs(os.path.join(self.data, 'templates', 'names'))
        os.symlink(f'../{digest}', os.path.join(self.data, 'templates', 'names', 'default'))

    def path(self, inside):
        return os.path.join(self.root, inside.lstrip('/'))

    def write(self, inside, text):
        with open(self.path(inside), 'w', encoding='ascii') as f:
            f.write(text)

    def remove(self, inside):
        path = self.path(inside)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)

    def link(self, inside, target):
        self.remove(inside)
        os.symlink(target, self.path(inside))

    def node(self, inside, kind, device=0):
        self.remove(inside)
        os.mknod(self.path(inside), kind | 0o666, device)

    def run(self, *words, user='1000', program=PROGRAM):
        return self.box.run([self.box.cuvette, 'run', '--data', self.data, '--user', user, '--timeout', '20s', '--',
                             program, *words], timeout=40)


def host_mounts():
    with open('/proc/self/mountinfo', encoding='utf-8') as f:
        return f.read()


def hostile_layout(report, box, around):
    """F07: whatever the template has where a mount or a lookup is to go, it stays inside or is refused."""
    victim = os.path.join(around.scratch, 'template-victim')
    os.makedirs(victim, exist_ok=True)
    up = '../' * 20 + victim[1:]
    cases = [
        ('plain', lambda t: None),
        ('proc-is-link', lambda t: t.link('proc', '/tmp')), ('proc-is-link-to-host', lambda t: t.link('proc', victim)),
        ('proc-is-dots', lambda t: t.link('proc', up)), ('proc-is-file', lambda t: (t.remove('proc'), t.write('proc', ''))),
        ('proc-is-missing', lambda t: t.remove('proc')),
        ('dev-is-link', lambda t: t.link('dev', '/tmp')), ('dev-is-dots', lambda t: t.link('dev', up)),
        ('dev-is-link-to-proc', lambda t: t.link('dev', '/proc/sys')),
        ('dev-null-is-link', lambda t: t.link('dev/null', '/proc/sys/kernel/core_pattern')),
        ('dev-null-is-file', lambda t: t.write('dev/null', 'x')),
        ('sys-is-link', lambda t: t.link('sys', '/proc')), ('sys-is-dots', lambda t: t.link('sys', up)),
        ('tmp-is-link', lambda t: t.link('tmp', victim)), ('tmp-is-link-to-proc', lambda t: t.link('tmp', '/proc/1/root')),
        ('home-is-link', lambda t: t.link('home', up)), ('etc-is-link', lambda t: t.link('etc', victim)),
        ('etc-is-link-to-proc', lambda t: t.link('etc', '/proc/1/root/etc')),
        ('passwd-is-link', lambda t: t.link('etc/passwd', around.secret)),
        ('passwd-is-fifo', lambda t: t.node('etc/passwd', stat.S_IFIFO)),
        ('passwd-is-zero-device', lambda t: t.node('etc/passwd', stat.S_IFCHR, os.makedev(1, 5))),
        ('passwd-is-endless', lambda t: os.truncate(t.path('etc/passwd'), 1 << 40)),
        ('group-is-fifo', lambda t: t.node('etc/group', stat.S_IFIFO)),
        ('resolv-conf-is-link', lambda t: t.link('etc/resolv.conf', os.path.join(victim, 'resolv'))),
        ('hostname-is-link', lambda t: t.link('etc/hostname', os.path.join(victim, 'hostname'))),
    ]
    before = host_mounts()
    for number, (name, spoil) in enumerate(cases, 1):
        template = Template(box, around, number)
        spoil(template)
        done = template.run('act', 'where')
        word = 'inside' if done.stdout.startswith('inside ') else 'refused' if done.returncode == 125 and done.stderr.strip() \
            else f'status {done.returncode} {done.stdout.strip()} {done.stderr.strip()}'
        if os.listdir(victim) or around.token in done.stdout + done.stderr:
            word = 'reached the host'
        report.check(f'F07-{name}', word, *(('inside',) if name == 'plain' else ('inside', 'refused')))
        if word == 'inside':
            looks_the_same(report, template, around, name)
    report.check('F07-host-mounts', 'unchanged' if host_mounts() == before else 'changed', 'unchanged')


def looks_the_same(report, template, around, name):
    """The masks and read-only mounts are where they belong, for root too."""
    # B13's working directories want a /tmp to make them in, which one layout takes away.
    judged = ('B01', 'B02', 'B03', 'B05', 'B06', 'B07', 'B08', 'B10', 'B14', 'B15')
    for user in ('1000', '0'):
        done = template.run('--only', 'B', '--host-path', around.secret, user=user)
        bad = [line for line in done.stdout.splitlines() if line.startswith('NOT ok ') and line[7:10] in judged]
        if 'probes, ' not in done.stdout:
            bad = [f'status {done.returncode} {done.stderr.strip()[-200:]}']
        report.check(f'F07-{name}-masks-{user}', '; '.join(bad[:3]) or 'closed', 'closed')


def hostile_files(report, box, around):
    """F08: setuid, capabilities, devices and marks of overlayfs in a template do nothing."""
    t = Template(box, around, 1000)
    for name, mode in (('setuid-root', 0o4755), ('setgid-root', 0o2755), ('capable', 0o755)):
        shutil.copy(box.program, t.path(name))
        os.chmod(t.path(name), mode)
    # Revision 2, effective: NET_RAW and SYS_ADMIN.
    os.setxattr(t.path('capable'), 'security.capability', struct.pack('<5I', 0x02000001, 1 << 13 | 1 << 21, 0, 0, 0))
    t.node('mem', stat.S_IFCHR, os.makedev(1, 1))
    t.node('zero', stat.S_IFCHR, os.makedev(1, 5))
    t.node('disk', stat.S_IFBLK, os.makedev(254, 0))
    t.node('whiteout', stat.S_IFCHR, 0)
    os.makedirs(t.path('redirected/below'))
    os.setxattr(t.path('redirected'), 'trusted.overlay.redirect', b'/' + b'../' * 20 + around.scratch[1:].encode())
    os.makedirs(t.path('opaque'))
    os.setxattr(t.path('opaque'), 'trusted.overlay.opaque', b'y')
    for name in ('setuid-root', 'setgid-root'):
        done = t.run('act', 'ids', program='/' + name)
        report.check(f'F08-{name}', done.stdout.strip() or done.stderr.strip(), 'uid 1000 gid 1000')
    done = t.run('act', 'have-caps', program='/capable')
    report.check('F08-capabilities', 'none' if done.returncode in (0, 126) else f'status {done.returncode}', 'none')
    for user in ('1000', '0'):
        for name in ('mem', 'zero', 'disk'):
            done = t.run('act', 'print', '/' + name, user=user)
            word = 'dead' if 'Permission denied' in done.stderr else done.stderr.strip() or 'readable'
            report.check(f'F08-device-{name}-{user}', word, 'dead')
        done = t.run('act', 'print', '/whiteout', user=user)
        report.check(f'F08-whiteout-{user}', 'absent' if 'No such file' in done.stderr else done.stderr.strip(), 'absent')
        done = t.run('act', 'print', '/redirected/secret', user=user)
        report.check(f'F08-redirect-{user}', 'reached' if around.token in done.stdout else 'inert', 'inert')


ROWS = (hostile_layout, hostile_files)
