# SPDX-License-Identifier: Apache-2.0
"""F01-F04: copies out of and into a sandbox that has set traps."""
import os
import stat

TRAPS = '/tmp/traps'


def holds(path, token):
    """Is the host's secret in this file or tree?  No link is followed, no device or pipe opened."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    if stat.S_ISDIR(found.st_mode):
        return any(holds(os.path.join(path, name), token) for name in os.listdir(path))
    if not stat.S_ISREG(found.st_mode) or found.st_size > 1 << 20:
        return False
    with open(path, 'rb') as f:
        return token.encode() in f.read()


def kind(path):
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return 'nothing'
    for test, name in ((stat.S_ISLNK, 'link'), (stat.S_ISDIR, 'directory'), (stat.S_ISREG, 'file')):
        if test(mode):
            return name
    return 'special'


def outcome(around, done, place):
    """One word for what a copy out gave."""
    if done.returncode == 'hung':
        return 'hung'
    if holds(place, around.token):
        return 'the secret of the host'
    if kind(place) == 'nothing':
        return 'refused' if done.stderr.strip() else f'nothing, and no word about it (status {done.returncode})'
    return kind(place)


def fresh(around, name):
    place = os.path.join(around.scratch, 'out')
    os.makedirs(place, exist_ok=True)
    return os.path.join(place, name)


def traps(box, around, source, place, user='1000'):
    return box.act('traps', TRAPS, around.secret, options=['--user', user, '--out', f'{source}:{place}'], timeout=60)


def links_out(report, box, around):
    """F01: the file inside, the link itself, or a refusal; never the host's file."""
    for user in ('1000', 'root'):
        for link in ('link-absolute', 'link-dots', 'link-shadow', 'link-init-root', 'link-self-root', 'link-loop', 'link-directory'):
            place = fresh(around, f'{user}-{link}')
            done = traps(box, around, f'{TRAPS}/{link}', place, user)
            report.check(f'F01-{link}-{user}', outcome(around, done, place), 'link', 'refused', 'file')
            # Below a link to / the way leads to the inside's file.
            if link == 'link-directory':
                place = fresh(around, f'{user}-below-link')
                done = traps(box, around, f'{TRAPS}/{link}{around.secret}', place, user)
                report.check(f'F01-below-link-{user}', outcome(around, done, place), 'refused')
    for path in ('/../../../../../../../..' + around.secret, '/proc/1/root' + around.secret, '/proc/self/root' + around.secret,
                 around.secret, '../../../../../../..' + around.secret):
        place = fresh(around, 'chain')
        done = traps(box, around, path, place, 'root')
        report.check(f'F01-path-{path.replace(around.scratch, "SCRATCH")}', outcome(around, done, place), 'refused')


def swapped_out(report, box, around):
    """F01: a file that becomes a link, and a file again, while it is copied."""
    for n in range(5):
        place = fresh(around, f'swap-{n}')
        done = box.act('swap', '/tmp/swapped', around.secret, options=['--out', f'/tmp/swapped:{place}'], timeout=60)
        word = outcome(around, done, place)
        if word == 'file':
            with open(place, 'rb') as f:
                word = 'file' if f.read() in (b'inside\n', b'') else 'another file'
        report.check(f'F01-swap-{n}', word, 'file', 'link', 'refused')


def special_out(report, box, around):
    """F02: refused or bounded, and never a hang."""
    rows = [(f'{TRAPS}/fifo', 'refused'), (f'{TRAPS}/socket', 'refused'), ('/dev/zero', 'refused'), ('/dev/null', 'refused'),
            ('/dev/tty', 'refused'), ('/proc/kmsg', 'refused'), ('/proc/kcore', 'refused'), ('/proc/self/mem', 'refused'),
            ('/proc/1/mem', 'refused'), ('/proc/1/environ', 'refused'), ('/proc/1/fd', 'refused'), ('/no/such/file', 'refused')]
    for path, want in rows:
        place = fresh(around, 'special' + path.replace('/', '-'))
        done = traps(box, around, path, place, 'root')
        word = outcome(around, done, place)
        if kind(place) in ('file', 'directory') and not (os.listdir(place) if kind(place) == 'directory' else
                                                         os.path.getsize(place)):
            # A file of /proc that says its size is 0 may come out as that.
            word = 'refused' if done.stderr.strip() or path.startswith('/proc/self/') else 'an empty ' + kind(place)
        report.check(f'F02-out-{path}', word, want)
    place = fresh(around, 'sparse')
    done = traps(box, around, f'{TRAPS}/sparse', place)
    word = outcome(around, done, place)
    if word == 'file':
        word = 'bounded' if os.stat(place).st_blocks * 512 < 1 << 20 else 'filled with zeros'
        os.unlink(place)
    report.check('F02-out-sparse-1T', word, 'bounded', 'refused')


def tree_out(report, box, around):
    """F02, F04, F05: a whole tree of traps."""
    before = set(os.listdir(around.scratch)) | {'out'}
    place = fresh(around, 'tree')
    done = traps(box, around, TRAPS, place)
    report.check('F02-out-tree', outcome(around, done, place), 'directory', 'refused')
    if kind(place) != 'directory':
        return
    kinds = {name: kind(os.path.join(os.fsencode(place), name)) for name in os.listdir(os.fsencode(place))}
    report.check('F02-tree-special-files', ' '.join(str(n) for n, k in kinds.items() if k == 'special') or 'none', 'none')
    report.check('F04-tree-stays-inside', ' '.join(sorted(set(os.listdir(around.scratch)) - before)) or 'nothing beside', 'nothing beside')
    report.check('F04-tree-setuid', str([n for n in kinds if kinds[n] == 'file' and
                                         os.lstat(os.path.join(os.fsencode(place), n)).st_mode & 0o6000]), '[]')
    report.check('F05-escaped-names', 'raw escape' if '\x1b' in done.stderr else 'escaped', 'escaped')
    for name, what in kinds.items():
        path = os.path.join(os.fsencode(place), name)
        if what == 'file' and os.path.getsize(path) > 1 << 20:
            report.check('F02-tree-sparse', 'bounded' if os.stat(path).st_blocks * 512 < 1 << 20 else 'filled with zeros', 'bounded')


def into_box(report, box, around):
    """F03, F04: nothing lands on the host, and a place that takes nothing says so."""
    victim = os.path.join(around.scratch, 'victim')
    os.makedirs(victim, exist_ok=True)
    source = os.path.join(around.scratch, 'upload')
    with open(source, 'w', encoding='ascii') as f:
        f.write('uploaded\n')
    linked = os.path.join(around.scratch, 'with-link')
    os.makedirs(linked, exist_ok=True)
    for name, target in (('dir', victim), ('file', os.path.join(victim, 'through-link')), ('dots', '../' * 30 + victim[1:])):
        if not os.path.islink(os.path.join(linked, name)):
            os.symlink(target, os.path.join(linked, name))
    either, refused = ('inside', 'refused'), ('refused',)
    rows = [
        ('F03-read-only-proc-sys', '/proc/sys/kernel/core_pattern', refused), ('F03-read-only-sys', '/sys/upload', refused),
        ('F03-read-only-dev', '/dev/upload', refused), ('F03-null-device', '/dev/null', refused),
        ('F03-below-a-file', '/etc/passwd/upload', refused),
        ('F03-program-of-init', '/proc/1/exe', refused), ('F03-root-of-init', '/proc/1/root/tmp/upload', refused),
        ('F03-fd-of-init', '/proc/1/fd/3', refused), ('F03-own-root', '/proc/self/root/tmp/upload', either),
        ('F03-memory-of-init', '/proc/1/mem', refused),
        ('F03-through-link', '/tmp/with-link/dir/upload', either), ('F03-over-link', '/tmp/with-link/file', either),
        ('F03-through-dots', '/tmp/with-link/dots/upload', either),
        ('F04-dots', '/../../../../../../../..' + victim + '/upload', either), ('F04-relative-dots', '../' * 30 + victim[1:] + '/upload', either),
        ('F04-absolute', victim + '/upload', either), ('F04-newline', '/tmp/new\nline', either),
        ('F04-escape', '/tmp/esc\x1b[31m', either), ('F04-not-utf-8', b'/tmp/\xff\xfe', either),
        ('F04-name-of-256', '/tmp/' + 'n' * 256, refused), ('F04-path-of-4097', '/tmp/' + 'd/' * 2046 + 'n' * 10, refused),
        ('F04-path-of-8000', '/tmp/' + 'd/' * 4000, refused), ('F04-dot-dot-only', '/tmp/..', refused), ('F04-root', '/', either),
    ]
    for user in ('1000', 'root'):
        for name, target, wanted in rows:
            spec = os.fsencode(source) + b':' + os.fsencode(target)
            done = box.act('ids', options=['--user', user, '--in', f'{linked}:/tmp/with-link', '--in', spec])
            word = 'inside' if done.returncode == 0 else 'refused' if done.returncode == 125 and done.stderr.strip() else \
                f'status {done.returncode} {done.stderr.strip()}'
            if os.listdir(victim):
                word = 'on the host: ' + ' '.join(os.listdir(victim))
                for left in os.listdir(victim):
                    os.unlink(os.path.join(victim, left))
            if '\x1b' in done.stderr:
                word = 'a raw escape in the message'
            report.check(f'{name}-{user}', word, *wanted)


ROWS = (links_out, swapped_out, special_out, tree_out, into_box)
