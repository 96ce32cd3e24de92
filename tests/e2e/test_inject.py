# SPDX-License-Identifier: Apache-2.0
"""Every system call that makes a sandbox fails once, and at every one of them the spawner is
killed once (escape probe E08).  After each: one line that says what failed and status 125, or
a sandbox that did without; and nothing left, at the latest after the next start.

strace does it, from a wrapper that the command line takes for the spawner.  What to fail is
read from a trace of a run in which nothing fails.
"""
import collections
import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

import host
from cli import BUILD
from conftest import require

# Memory, signals and the end of things: they fail for no caller, or not in this way.
NEVER = {'close', 'brk', 'mmap', 'munmap', 'mprotect', 'madvise', 'exit', 'exit_group', 'wait4', 'waitid', 'execve',
         'arch_prctl', 'set_tid_address', 'set_robust_list', 'rseq', 'getpid', 'getuid', 'geteuid', 'umask', 'futex',
         # Tell what was, never that something failed.
         'setfsuid', 'setfsgid',
         'rt_sigaction', 'rt_sigprocmask', 'rt_sigreturn', 'nanosleep', 'clock_nanosleep', 'restart_syscall'}
# What these really answer when they fail; the rest lacks permission.
ERRORS = {'clone3': 'EAGAIN', 'open': 'EMFILE', 'openat': 'EMFILE', 'openat2': 'EMFILE', 'mkdirat': 'ENOSPC',
          'write': 'EIO', 'read': 'EIO', 'socket': 'ENFILE', 'fsconfig': 'EINVAL', 'unlinkat': 'EBUSY'}
# Many calls of one kind in a row: the first, the last and every third of them are enough.
MANY = 12


class Bench:
    """A folder whose cuvette-spawner is the real one under strace with the options of a file."""

    def __init__(self, tiny, folder, options):
        self.folder, self.log = folder, os.path.join(folder, 'trace')
        wrapper = os.path.join(folder, 'cuvette-spawner')
        with open(wrapper, 'w', encoding='ascii') as f:
            f.write(f'#!/bin/sh\nexec strace -qqq -o {self.log} $(cat {folder}/strace) {BUILD}/cuvette-spawner "$@"\n')
        os.chmod(wrapper, 0o755)
        self.cli = tiny.with_env(CUVETTE_LIBEXEC=folder, CUVETTE_SPAWNER=wrapper)
        self.options = options

    def run(self, *strace):
        with open(os.path.join(self.folder, 'strace'), 'w', encoding='ascii') as f:
            f.write(' '.join(strace))
        return self.cli.run('true', options=self.options, limit=12)

    def trace(self):
        with open(self.log, encoding='ascii', errors='replace') as f:
            return f.read()


@pytest.fixture(scope='module')
def benches(tiny, tmp_path_factory):
    require(shutil.which('strace'), 'needs strace')

    def make(options, count=2):
        return [Bench(tiny, str(tmp_path_factory.mktemp('bench')), options) for _ in range(count)]
    return make


def calls_of_each(trace):
    """{pid: [names of its calls in order]} of what `strace -f` wrote."""
    calls = collections.defaultdict(list)
    for line in trace.splitlines():
        match = re.match(r'(\d+) +(\w+)\(', line)
        if match:
            calls[int(match[1])].append(match[2])
    return calls


def occurrences(names):
    """(name, n) for the n-th call of each name, thinned out where there are many."""
    count = collections.Counter(names)
    for name, most in count.items():
        if name not in NEVER:
            yield from ((name, n) for n in range(1, most + 1) if most <= MANY or n in (1, most) or n % 3 == 0)


def spawner_calls(bench):
    assert bench.run('-f').status == 0
    calls = calls_of_each(bench.trace())
    return list(occurrences(calls[next(iter(calls))]))


def setup_calls(bench):
    """Of the processes that build the sandbox around themselves, until one becomes init."""
    assert bench.run('-f').status == 0
    calls = calls_of_each(bench.trace())
    spawner = next(iter(calls))
    wanted = set()
    for pid, names in calls.items():
        end = names.index('execveat') if 'execveat' in names else None
        # init's own children are commands; their first call is no business of the spawner's.
        if pid == spawner or 'execve' in names:
            continue
        wanted.update(occurrences(names[:end]))
        if end is not None:
            wanted.add(('execveat', 1))
    return sorted(wanted)


def leftover_cgroups(before):
    deadline = time.monotonic() + 3
    while True:
        left = [d for n, dirs in host.cgroups().items() if not host.slot_is_held(n) for d in dirs]
        if not left or before['strangers'] or host.strangers() or time.monotonic() > deadline:
            return left if not before['strangers'] and not host.strangers() else []
        time.sleep(0.02)


def still_there(tiny, before, what, left):
    """A fault in the middle of the end itself may leave a cgroup, empty, to the next start."""
    if not left:
        return None
    if any(host.read(f'{d}/cgroup.procs') for d in left):
        return f'{what} left processes in {left}'
    tiny.run('true')
    left = leftover_cgroups(before)
    return f'{what} left {left}, after the next start too' if left else None


def lines_of(err):
    return [line for line in err.decode(errors='replace').splitlines()
            if 'removed sandboxes of a spawner that was killed' not in line and not line.startswith('strace:')]


def try_all(benches, plan, one):
    """Runs one(bench, name, n) for each, two at a time; all complaints at once."""
    idle, lock = list(benches), threading.Lock()

    def attempt(item):
        with lock:
            bench = idle.pop()
        try:
            return one(bench, *item)
        except subprocess.TimeoutExpired:
            return f'{item[0]} {item[1]}: hangs'
        finally:
            with lock:
                idle.append(bench)

    with concurrent.futures.ThreadPoolExecutor(len(benches)) as pool:
        wrong = [w for w in pool.map(attempt, plan) if w]
    assert not wrong, '\n'.join(wrong)


def check_failure(what, result, trace):
    if 'INJECTED' not in trace:
        return None     # this run took another way: nothing failed
    lines = lines_of(result.err)
    if result.status == 0 and len(lines) <= 1:
        return None     # it can do without, and may warn of that
    if lines and lines[0].startswith('cuvette-spawner: error: usage: '):
        lines.pop(0)    # to a person who starts it by hand
    if result.status == 125 and result.out == b'' and len(lines) == 1 and lines[0].startswith('cuvette: '):
        return None
    return f'{what}: status {result.status}, {lines}'


DISKS = [pytest.param((), id='memory'), pytest.param(('--disk-kind', 'image', '--disk', '16M', '--tty'), id='image-tty')]


@pytest.mark.parametrize('options', DISKS)
def test_E08_each_call_of_the_spawner_fails_once(tiny, benches, options):
    before = host.snapshot()
    pair = benches(options)
    plan = spawner_calls(pair[0])
    assert len(plan) > 100

    def one(bench, name, n):
        error = ERRORS.get(name, 'EPERM')
        result = bench.run(f'-e trace={name}', f'-e inject={name}:error={error}:when={n}')
        wrong, left = check_failure(f'{name} {n}', result, bench.trace()), leftover_cgroups(before)
        return wrong or still_there(tiny, before, f'{name} {n}', left)

    try_all(pair, plan, one)
    host.assert_clean(before, tiny.data)


@pytest.mark.parametrize('options', DISKS)
def test_E08_each_call_of_the_processes_that_become_the_sandbox_fails_once(tiny, benches, options):
    """init and the command inherit the fault: there the command's own failure is an answer too."""
    before = host.snapshot()
    pair = benches(options)
    plan, refused = setup_calls(pair[0]), []
    assert len(plan) > 40

    def one(bench, name, n):
        error = ERRORS.get(name, 'EPERM')
        result = bench.run('-f', f'-e trace={name}', f'-e inject={name}:error={error}:when={n}')
        left = still_there(tiny, before, f'{name} {n}', leftover_cgroups(before))
        if left:
            return left
        if result.status == 125:
            refused.append(f'{name} {n}')
        if result.status not in (0, 1, 125, 126, 127, 128 + signal.SIGSEGV) or len(lines_of(result.err)) > 1:
            return f'{name} {n}: status {result.status}, {lines_of(result.err)}'
        return None

    try_all(pair, plan, one)
    # Hardly any step of making a sandbox may be left out.
    assert len(refused) > 0.6 * len(plan), set(f'{name} {n}' for name, n in plan) - set(refused)
    host.assert_clean(before, tiny.data)


@pytest.mark.parametrize('options', DISKS)
def test_E08_the_spawner_is_killed_at_each_call(tiny, benches, options):
    before = host.snapshot()
    pair = benches(options)
    plan = spawner_calls(pair[0])

    def one(bench, name, n):
        result = bench.run(f'-e trace={name}', f'-e inject={name}:signal=KILL:when={n}')
        if result.status == 0:
            return None         # at the end, or this run took another way
        lines = lines_of(result.err)
        if result.status == 125 and result.out == b'' and len(lines) == 1 and lines[0].startswith('cuvette: '):
            return None
        return f'{name} {n}: status {result.status}, {lines}'

    try_all(pair, plan, one)
    assert tiny.run('true').status == 0
    host.assert_clean(before, tiny.data)
