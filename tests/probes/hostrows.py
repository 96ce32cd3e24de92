# SPDX-License-Identifier: Apache-2.0
"""Rows that need a look from the host: processes, mounts, ids, what a run leaves behind."""
import glob
import hashlib
import os
import signal
import subprocess
import time

from box import PROGRAM_INSIDE, stop


def digest(path):
    with open(path, 'rb') as f:
        return hashlib.sha256(f.read()).hexdigest()


def arguments_of(pid):
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as f:
            return f.read().split(b'\0')
    except OSError:
        return []


def inside_processes(mark):
    """Host pids of the probe's own processes (not of the `cuvette run` that names it too)."""
    found = []
    for path in glob.glob('/proc/[0-9]*'):
        words = arguments_of(os.path.basename(path))
        if mark.encode() in words and words[0] in (PROGRAM_INSIDE.encode(), b'cuvette-probe'):
            found.append(int(os.path.basename(path)))
    return found


def host_uids(pid):
    with open(f'/proc/{pid}/status', encoding='utf-8', errors='replace') as f:
        for line in f:
            if line.startswith('Uid:'):
                return {int(word) for word in line.split()[1:]}
    return set()


def new_mark():
    return 'mark-' + os.urandom(8).hex()


# ---- libraries and debuggers of a real template ----

def template_programs(report, box, around):
    del around
    thread = 'import threading; t = threading.Thread(target=print, args=["started"]); t.start(); t.join()'
    rows = (
        ('A08-libc-threads', ['python3', '-c', thread], 'started'),
        ('A40-gdb', ['gdb', '-q', '-batch', '-ex', 'run', '--args', '/bin/echo', 'debugged'], 'debugged'),
        ('A40-strace', ['strace', '-f', '-o', '/tmp/trace', '/bin/echo', 'traced'], 'traced'),
    )
    for name, command, word in rows:
        done = box.run([box.cuvette, 'run', '--', *command])
        if done.returncode == 127:
            report.skip(f'host/{name}', f'the template has no {command[0]}')
        else:
            report.check(name, word if word in done.stdout else f'{done.returncode} {done.stderr.strip()[-200:]}', word)


# ---- the template and other sandboxes ----

def template_stays(report, box, around):
    """B21, B22: what one sandbox does to a template file is seen by nobody else."""
    del around
    file, text = '/etc/passwd', '# changed by a probe'
    on_host = box.template_file(file)
    before = digest(on_host) if on_host else None
    changed = box.act('append', file, text + '\n', options=['--user', 'root'])
    report.check('B21-copy-up', 'written' if changed.returncode == 0 else changed.stderr.strip(), 'written')
    other = box.act('print', file)
    report.check('B21-other-sandbox', 'changed' if text in other.stdout or not other.stdout else 'unchanged', 'unchanged')
    refused = box.act('append', file, text + '\n')
    report.check('B21-append-as-user', 'refused' if 'Permission denied' in refused.stderr else refused.stdout + refused.stderr,
                 'refused')
    if on_host:
        report.check('B21-template-on-host', 'unchanged' if digest(on_host) == before else 'changed', 'unchanged')
    else:
        report.skip('host/B21-template-on-host', 'the template is no directory')


def setuid_from_host(report, box, around):
    """B20: a setuid file made by root inside belongs to no host user worth being, and no other user reaches it."""
    mark = new_mark()
    name = '/tmp/probe-setuid'
    child = subprocess.Popen(
        [box.cuvette, 'run', '--user', 'root', '--in', f'{box.program}:{PROGRAM_INSIDE}', '--', '/bin/sh', '-c',
         f'cp {PROGRAM_INSIDE} {name} && chmod 4755 {name} && exec {PROGRAM_INSIDE} act stay {mark} 30'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8')
    try:
        if not child.stdout.readline().startswith('uid 0'):
            raise ValueError(f'no setuid file was made: {stop(child)[1].strip()}')
        pids = inside_processes(mark)
        path = f'/proc/{pids[0]}/root{name}' if pids else ''
        found = os.stat(path)
        report.check('B20-setuid-owner', 'a user of the host' if found.st_uid < 65536 else 'nobody', 'nobody')
        report.check('B20-setuid-bit-from-host', 'nosuid' if os.statvfs(path).f_flag & os.ST_NOSUID else 'effective', 'nosuid')
        report.check('B20-setuid-reach', reach_as_nobody(path), 'PermissionError')
    finally:
        child.terminate()
        stop(child)
    del around


def reach_as_nobody(path):
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            os.stat(path)
            word = 'reached'
        except OSError as why:
            word = type(why).__name__
        os.write(write_end, word.encode())
        os._exit(0)
    os.close(write_end)
    os.waitpid(pid, 0)
    with os.fdopen(read_end) as answer:
        return answer.read()


# ---- mounts, core dumps ----

def mounts_after_start(report, box, around):
    """B24: a mount made on the host while the sandbox runs."""
    child = box.start('mounts')
    place = os.path.join(around.scratch, 'mount')
    os.mkdir(place)
    mounted = False
    try:
        ready = child.stdout.readline().strip()
        subprocess.run(['mount', '-t', 'tmpfs', 'cuvette-probe-mount', place], check=True)
        mounted = True
        output = ready + '\n' + stop(child)[0] if ready == 'ready' else stop(child)[1]
    finally:
        if mounted:
            subprocess.run(['umount', place], check=True)
        os.rmdir(place)
    word = 'unchanged' if output.startswith('ready\nunchanged\n') else output[:200]
    report.check('B24-mount-after-start', word, 'unchanged')
    report.check('B24-mount-name', 'visible' if 'cuvette-probe-mount' in output else 'invisible', 'invisible')


def crash(report, box, around):
    """B23: a crash inside leaves nothing on the host (core_pattern without a handler)."""
    before = set(glob.glob('/core*') + glob.glob('/var/tmp/core*') + glob.glob(os.getcwd() + '/core*'))
    done = box.act('crash')
    after = set(glob.glob('/core*') + glob.glob('/var/tmp/core*') + glob.glob(os.getcwd() + '/core*'))
    report.check('B23-crash', f'status {done.returncode}', f'status {128 + signal.SIGABRT}')
    report.check('B23-no-core-on-host', ' '.join(sorted(after - before)) or 'none', 'none')
    del around


def core_handler(report, box, around):
    """
    B23 with a handler.  The kernel starts a piped handler whatever RLIMIT_CORE is, 1 excepted
    (fs/coredump.c: "cprm.limit == 1"), so a limit of 0 keeps a file away, not a handler.
    """
    witness = os.path.join(around.scratch, 'handler-ran')
    script = os.path.join(around.scratch, 'handler')
    with open(script, 'w', encoding='ascii') as f:
        f.write(f'#!/bin/sh\ncat >/dev/null\n: > {witness}\n')
    os.chmod(script, 0o755)
    pattern = '/proc/sys/kernel/core_pattern'
    with open(pattern, encoding='utf-8') as f:
        before = f.read().rstrip('\n')
    for name, action in (('B23-core-handler', 'crash'), ('B23-core-handler-after-lowering', 'crash-without-limit')):
        try:
            with open(pattern, 'w', encoding='utf-8') as f:
                f.write('|' + script)
            box.act(action)
            time.sleep(0.3)
        finally:
            with open(pattern, 'w', encoding='utf-8') as f:
                f.write(before)
        report.check(name, 'ran' if os.path.exists(witness) else 'none', 'none')
        if os.path.exists(witness):
            os.unlink(witness)


# ---- processes ----

def init_as_interpreter(report, box, around):
    """C04: a script whose interpreter is whoever starts it, which is init's own program."""
    script = os.path.join(around.scratch, 'script')
    with open(script, 'w', encoding='ascii') as f:
        f.write('#!/proc/self/exe\n')
    os.chmod(script, 0o755)
    before = digest(box.init) if os.path.exists(box.init) else None
    done = box.run([box.cuvette, 'run', '--user', 'root', '--in', f'{script}:/tmp/script', '--timeout', '10s', '--',
                    '/tmp/script'], timeout=30)
    word = 'refused' if done.returncode not in (0, 124, 'hung') else f'status {done.returncode}'
    report.check('C04-init-as-interpreter', word, 'refused')
    if before:
        report.check('C04-init-program', 'unchanged' if digest(box.init) == before else 'changed', 'unchanged')


def kill_everything(report, box, around):
    done = box.act('kill-all', options=['--user', 'root'])
    report.check('C07-kill-all-inside', 'still here' if done.stdout.strip() == 'still here' else f'status {done.returncode}',
                 'still here')
    report.check('C07-kill-all-host', 'alive' if around.sleeper.poll() is None else 'dead', 'alive')


def start_directory(report, box, around):
    """C09 (CVE-2024-21626): a working directory through a descriptor that init may have open."""
    del around
    places = [f'/proc/self/fd/{n}' for n in range(16)] + [f'/proc/1/fd/{n}' for n in range(3, 8)]
    places += [f'/proc/self/fd/{n}/../../..' for n in (3, 4, 7)]
    places += ['/proc/1/root', '/proc/1/cwd', '/proc/self/root', '/proc/self/cwd', '/../../..']
    for user in ('1000', 'root'):
        for place in places:
            done = box.act('where', options=['--user', user, '--cwd', place])
            word = 'refused' if done.returncode == 125 and done.stderr.strip() else done.stdout.split(' ')[0] or \
                f'status {done.returncode}'
            report.check(f'C09-cwd-{user}-{place}', word, 'refused', 'inside')


def lingering(report, box, around):
    """C14: gone when the run is over, without a grace."""
    del around
    for user in ('1000', 'root'):
        mark = new_mark()
        done = box.act('linger', mark, options=['--user', user])
        left = inside_processes(mark)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        report.check(f'C14-linger-{user}', f'{len(left)} left' if left else 'gone' if 'lingering' in done.stdout else
                     done.stderr.strip(), 'gone')


def output_held(report, box, around):
    """C15: the command is over when its process is, not when the last holder of its output is."""
    del around
    began = time.monotonic()
    done = box.act('hold-output', timeout=30)
    took = time.monotonic() - began
    report.check('C15-output-held', 'ended' if took < 10 and done.returncode == 0 else f'{done.returncode} after {took:.0f} s',
                 'ended')
    report.check('C15-output-complete', done.stdout.strip(), 'left')


def user_ids(report, box, around):
    """F09: whatever number is asked for, no process runs as a user of the host."""
    del around
    names = ['0', '1000', '65533', '65534', '65535', '65536', '65537', '131072', '2147483647', '2147483648', '4294967294',
             '4294967295', '4294967296', '18446744073709551616', '-1', '+0', ' 0', '0x0', '1000:0', '1000 0', 'no-such-user',
             'root\n', '../root', 'nobody']
    for name in names:
        mark = new_mark()
        child = box.start('stay', mark, '20', options=[f'--user={name}'])
        try:
            line = child.stdout.readline()
            if not line:
                report.check(f'F09-user-{name!r}', 'refused' if child.wait(20) == 125 else f'status {child.returncode}', 'refused')
                continue
            inside = int(line.split()[1])
            uids = set().union(*(host_uids(pid) for pid in inside_processes(mark)))
            mapped = uids and all(uid >= 65536 and uid % 65536 == inside for uid in uids)
            report.check(f'F09-user-{name!r}', 'mapped' if mapped else f'{inside} inside is {uids} outside', 'mapped')
        finally:
            child.terminate()
            stop(child)


ROWS = (template_programs, template_stays, setuid_from_host, mounts_after_start, crash, init_as_interpreter, kill_everything,
        start_directory, lingering, output_held, user_ids)
