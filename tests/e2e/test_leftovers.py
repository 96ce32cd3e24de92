# SPDX-License-Identifier: Apache-2.0
"""Whatever ends, and whenever: afterwards, at the latest after the next start, nothing of a
sandbox remains.  (The fixture nothing_left looks after each of these tests once more.)"""
import os
import random
import signal
import subprocess
import time

import pytest

import host
from spawner import Spawner, SpawnError

IMAGE = ('--disk-kind', 'image', '--disk', '16M')


def reap(tiny):
    """The next start of anything clears away what a killed spawner left."""
    assert tiny.run('true').status == 0


def settled(tiny, before):
    reap(tiny)
    host.assert_clean(before, tiny.data)


def kill_spawners():
    for pid in host.spawners():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass        # it was done just now


def await_exit(child, seconds=20):
    out, err = child.communicate(timeout=seconds)
    return child.returncode, out, err


def start_sleeper(tiny, options=()):
    child = tiny.start('run', '--timeout', '60s', *options, '--', 'sh', '-c', 'setsid sleep 59 & echo ready; sleep 59')
    assert child.stdout.readline() == b'ready\n'
    return child


def test_a_hundred_runs_leave_nothing(tiny):
    before, namespaces = host.snapshot(), host.net_namespaces()
    for i in range(100):
        assert tiny.run('sh', '-c', 'sleep 9 & exit 0', options=IMAGE if i % 10 == 0 else ()).status == 0
    host.assert_clean(before, tiny.data)
    if namespaces is not None and not before['strangers'] and not host.strangers():
        time.sleep(1)           # they vanish in the background
        assert host.net_namespaces() <= namespaces + 16


@pytest.mark.parametrize('options', [(), IMAGE], ids=['memory', 'image'])
@pytest.mark.parametrize('sig', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal(tiny, sig, options):
    before = host.snapshot()
    child = start_sleeper(tiny, options)
    child.send_signal(sig)
    status, _, _ = await_exit(child)
    assert status == 128 + sig
    host.assert_clean(before, tiny.data)


@pytest.mark.parametrize('options', [(), IMAGE, ('--tty',)], ids=['memory', 'image', 'tty'])
def test_after_kill_9_of_the_command_line(tiny, options):
    """The spawner sees its connection end and takes the sandbox down: no next start is needed."""
    before = host.snapshot()
    child = tiny.start('run', '--timeout', '60s', *options, '--', 'sh', '-c', 'setsid sleep 59 & echo ready; sleep 59')
    assert child.stdout.readline().strip() == b'ready'
    child.kill()
    child.communicate()
    host.assert_clean(before, tiny.data)


def test_after_kill_9_of_the_command_line_at_any_moment(tiny):
    before = host.snapshot()
    for _ in range(40):
        child = tiny.start('run', '--', 'sh', '-c', 'sleep 0.01')
        time.sleep(random.uniform(0, 0.06))
        child.kill()
        child.communicate()
    host.assert_clean(before, tiny.data)


@pytest.mark.parametrize('options', [(), IMAGE], ids=['memory', 'image'])
def test_after_kill_9_of_the_spawner(tiny, options):
    before = host.snapshot()
    child = start_sleeper(tiny, options)
    [spawner] = host.spawners()
    os.kill(spawner, signal.SIGKILL)
    # Sandboxes outlive a spawner, so the command goes on; the caller's signal reaches it still.
    time.sleep(0.1)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    status, _, err = await_exit(child)
    assert status in (125, 130)
    assert len(err.splitlines()) <= 2
    settled(tiny, before)


@pytest.mark.parametrize('options', [(), IMAGE], ids=['memory', 'image'])
def test_after_kill_9_of_the_spawner_at_any_moment(tiny, options):
    before = host.snapshot()
    for _ in range(20):
        child = tiny.start('run', *options, '--', 'sh', '-c', 'sleep 0.01')
        time.sleep(random.uniform(0, 0.08))
        kill_spawners()
        status, out, err = await_exit(child)
        # Killed before or after it mattered: the command's own end, or one line that says so.
        lines = [line for line in err.splitlines() if b'removed sandboxes of a spawner that was killed' not in line]
        assert status == 0 or (status == 125 and out == b'' and len(lines) == 1), (status, out, err)
    settled(tiny, before)


def test_after_kill_9_of_everything(tiny):
    before = host.snapshot()
    child = start_sleeper(tiny, IMAGE)
    for pid in (child.pid, *host.spawners()):
        os.kill(pid, signal.SIGKILL)
    child.communicate()
    settled(tiny, before)


def test_after_kill_9_of_init(tiny):
    """PID 1's death is the sandbox's: the command line says that it ended, and nothing hangs."""
    before = host.snapshot()
    child = start_sleeper(tiny)
    inits = [pid for pid, uid, cmdline, _ in host.processes() if host.slot_of_uid(uid) is not None and
             cmdline.startswith(b'cuvette-init') and parent_of(pid) in host.spawners()]
    assert len(inits) == 1
    os.kill(inits[0], signal.SIGKILL)
    status, _, err = await_exit(child)
    assert status == 125 and b'the sandbox ended' in err and len(err.splitlines()) == 1
    host.assert_clean(before, tiny.data)


def parent_of(pid):
    return int(host.read(f'/proc/{pid}/stat').rsplit(b')', 1)[1].split()[1])


def test_twenty_sandboxes_of_a_killed_spawner_are_reaped(tiny, tiny_data):
    """I02, for a spawner: with pools, terminals, images and processes inside."""
    before = host.snapshot()
    spawner = Spawner(tiny_data)
    boxes = [spawner.create(disk=i % 2, disk_bytes=16 << 20, options=i % 4 // 2) for i in range(20)]
    for box in boxes:
        box.start('/bin/sleep', '99')
    slots = {box.slot() for box in boxes}
    assert len(slots) == 20
    spawner.kill()
    left = set(host.cgroups())
    assert slots <= left                # they live on until somebody starts
    settled(tiny, before)
    assert not slots & {n for n in host.cgroups() if not host.slot_is_held(n)}


def test_what_a_living_spawner_holds_is_not_reaped(tiny, tiny_data):
    with Spawner(tiny_data) as spawner:
        boxes = [spawner.create() for _ in range(3)]
        for _ in range(3):
            reap(tiny)
        for box in boxes:
            assert box.sh('echo alive') == 'alive'
            box.destroy()


def test_reaping_in_parallel(tiny, tiny_data):
    """Many next starts at once: each leftover is reaped by one of them, and nobody fails."""
    before = host.snapshot()
    spawner = Spawner(tiny_data)
    for _ in range(10):
        spawner.create().start('/bin/sleep', '99')
    spawner.kill()
    children = [tiny.start('run', '--', 'echo', 'ok') for _ in range(8)]
    for child in children:
        assert await_exit(child)[:2] == (0, b'ok\n')
    host.assert_clean(before, tiny_data)


def test_a_leftover_that_is_frozen_is_reaped(tiny, tiny_data):
    before = host.snapshot()
    spawner = Spawner(tiny_data)
    box = spawner.create()
    box.start('/bin/sleep', '99')
    slot = box.slot()
    [freeze] = [f'{d}/cgroup.freeze' for d in host.cgroups()[slot] if os.path.exists(f'{d}/cgroup.freeze')]
    with open(freeze, 'w', encoding='ascii') as f:
        f.write('1')
    spawner.kill()
    settled(tiny, before)


def test_a_leftover_that_resists_is_passed_over(tiny, tiny_data):
    """No SIGKILL reaches what a v1 freezer holds, just as with a process that hangs in the kernel."""
    if not os.path.exists('/sys/fs/cgroup/freezer/cgroup.procs'):
        pytest.skip('needs a v1 freezer')
    before, freezer = host.snapshot(), f'/sys/fs/cgroup/freezer/e2e-{os.getpid()}'
    spawner = Spawner(tiny_data)
    box = spawner.create()
    box.start('/bin/sleep', '99')
    os.mkdir(freezer)
    try:
        for file, value in (('cgroup.procs', str(box.init_pid)), ('freezer.state', 'FROZEN')):
            with open(f'{freezer}/{file}', 'w', encoding='ascii') as f:
                f.write(value)
        spawner.kill()
        result = tiny.run('echo', 'ran')
        assert (result.status, result.text) == (0, 'ran\n'), result
        assert 'still there' in result.message and result.seconds < 9, result
    finally:
        with open(f'{freezer}/freezer.state', 'w', encoding='ascii') as f:
            f.write('THAWED')
        deadline = time.monotonic() + 10
        while open(f'{freezer}/cgroup.procs', encoding='ascii').read() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.rmdir(freezer)
    settled(tiny, before)


def test_the_end_of_the_connection_destroys_everything(tiny_data):
    before = host.snapshot()
    spawner = Spawner(tiny_data)
    for i in range(5):
        spawner.create(disk=i % 2).start('/bin/sleep', '99')
    spawner.close()
    host.assert_clean(before, tiny_data)


def test_a_term_to_the_spawner_destroys_everything(tiny_data):
    before = host.snapshot()
    spawner = Spawner(tiny_data)
    spawner.create().start('/bin/sleep', '99')
    os.kill(spawner.pid, signal.SIGTERM)
    os.waitpid(spawner.pid, 0)
    spawner.pid = 0
    spawner.sock.close()
    host.assert_clean(before, tiny_data)


def test_a_failed_creation_leaves_nothing_and_the_spawner_usable(tiny_data):
    with Spawner(tiny_data) as spawner:
        good = spawner.digest
        for digest in ('0' * 64, 'f' * 64, ''):
            spawner.digest = digest
            with pytest.raises(SpawnError):
                spawner.create()
        spawner.digest = good
        box = spawner.create()
        assert box.sh('echo ok') == 'ok'
        box.destroy()


def test_a_full_data_directory_is_an_error_and_leaves_nothing(tiny, tiny_data, tmp_path):
    """The disk images of a host without space for them."""
    mount = tmp_path / 'small'
    mount.mkdir()
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=8M', 'tmpfs', mount], check=True)
    try:
        os.makedirs(mount / 'templates/names')
        digest = os.path.basename(os.readlink(f'{tiny_data}/templates/names/default'))
        os.mkdir(mount / 'templates' / digest)
        subprocess.run(['cp', '-a', f'{tiny_data}/templates/{digest}/.', mount / 'templates' / digest], check=True)
        os.symlink(f'../{digest}', mount / 'templates/names/default')
        subprocess.run(['dd', 'if=/dev/zero', f'of={mount}/fill', 'bs=64k'], capture_output=True, check=False)
        r = tiny.run('echo', 'ran', options=('--data', str(mount), *IMAGE))
        assert r.status == 125 and r.out == b'' and len(r.message.splitlines()) == 1
    finally:
        subprocess.run(['umount', mount], check=True)
