# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes at once, and pools of blank ones: each has an identity of its own, and what
is used again carries nothing over."""
import os
import re
import socket
import time

import pytest

import host
from spawner import MIB, Spawner, SpawnError

IDENTITY = '''hostname; cat /etc/machine-id; cat /proc/self/uid_map; for n in net pid mnt ipc uts user cgroup; do
readlink /proc/self/ns/$n; done; sleep 0.5'''


def test_twenty_runs_at_once_are_twenty_machines(tiny):
    # Alive until the last has started: a slot that is free again may serve twice.
    children = [tiny.start('run', '--', 'sh', '-c', f'{IDENTITY}\nsleep 5') for _ in range(20)]
    seen = []
    for child in children:
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
        seen.append(out.decode().split('\n'))
    hostnames, machine_ids, maps = ({s[i] for s in seen} for i in range(3))
    assert len(hostnames) == len(machine_ids) == len(maps) == 20
    assert all(re.fullmatch('[0-9a-f]{32}', m) for m in machine_ids)
    bases = sorted(int(m.split()[1]) for m in maps)
    assert all(b - a >= 65536 for a, b in zip(bases, bases[1:])) and all(m.split()[2] == '65536' for m in maps)
    for i in range(3, 10):
        assert len({s[i] for s in seen}) == 20, seen[0][i]
    own = {os.readlink(f'/proc/self/ns/{n}') for n in ('net', 'pid', 'mnt', 'ipc', 'uts', 'user', 'cgroup')}
    assert not own & {s[i] for s in seen for i in range(3, 10)}


def test_twenty_at_once_keep_their_own_output_and_status(tiny):
    children = [tiny.start('run', '--', 'sh', '-c', f'seq {i * 1000} {i * 1000 + 5000}; exit {i}') for i in range(20)]
    for i, child in enumerate(children):
        out, _ = child.communicate(timeout=60)
        assert child.returncode == i
        assert out.decode().split() == [str(n) for n in range(i * 1000, i * 1000 + 5001)]


def fill(spawner, count, **limits):
    """Waits until the pool is full: blank sandboxes are made when no request waits."""
    spawner.pool(count, **limits)
    children = f'/proc/{spawner.pid}/task/{spawner.pid}/children'
    deadline = time.monotonic() + 20
    while len(open(children, encoding='ascii').read().split()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_pool_hands_out_each_blank_one_once(tiny_data):
    with Spawner(tiny_data) as spawner:
        fill(spawner, 5)
        boxes = [spawner.create() for _ in range(5)]
        assert all(b.pooled for b in boxes)
        assert len({b.id for b in boxes}) == len({b.init_pid for b in boxes}) == 5
        for box in boxes:
            assert box.sh('ls -A /tmp /home/user; hostname').split('\n')[-1] == box.id[:12]
            box.sh('echo used > /tmp/used')
        for box in boxes:
            box.destroy()
        # Never reused: what comes next is another one.
        fill(spawner, 5)
        more = [spawner.create() for _ in range(5)]
        assert not {b.id for b in more} & {b.id for b in boxes}
        for box in more:
            assert box.run('/bin/cat', '/tmp/used')[0] == 1
            box.destroy()


def test_an_empty_pool_is_no_reason_to_wait(tiny_data):
    with Spawner(tiny_data) as spawner:
        fill(spawner, 2)
        pooled = [spawner.create().pooled for _ in range(4)]
        assert pooled[:2] == [True, True]


def test_a_pool_refills_in_the_background(tiny_data):
    with Spawner(tiny_data) as spawner:
        fill(spawner, 3)
        for _ in range(4):
            box = spawner.create()
            assert box.pooled
            box.destroy()
            fill(spawner, 3)


def test_a_pool_of_another_kind_is_not_used(tiny_data):
    with Spawner(tiny_data) as spawner:
        fill(spawner, 2)
        for other in ({'disk': 1, 'disk_bytes': 16 * MIB}, {'options': 1}, {'nofile': 256}, {'disk_bytes': 8 * MIB}):
            box = spawner.create(**other)
            assert not box.pooled, other
            box.destroy()
        assert spawner.create().pooled


def test_a_pool_is_dropped_when_it_is_set_to_0(tiny_data):
    before = host.snapshot()
    with Spawner(tiny_data) as spawner:
        fill(spawner, 3)
        spawner.pool(0)
        assert not spawner.create().pooled
    host.assert_clean(before, tiny_data)


def test_the_limits_are_those_of_the_claim(tiny_data):
    with Spawner(tiny_data) as spawner:
        fill(spawner, 2, disk_bytes=16 * MIB)
        box = spawner.create(memory=64 * MIB, pids=16, cpu=500, disk_bytes=16 * MIB)
        assert box.pooled
        stats = box.stats()
        assert (stats['memory_limit_bytes'], stats['pids_limit'], stats['cpu_milli_limit']) == (64 * MIB, 16, 500)
        assert box.run('/bin/bomb', 'heap')[0] == -9
        assert box.stats()['oom_kills'] == 1 and box.stats()['memory_peak_bytes'] <= 64 * MIB
        assert box.run('/bin/bomb', 'threads')[1].split()[:2] == [b'threads', b'15']
        box.destroy()


def identity(box):
    names = box.namespaces()
    names.update(hostname=box.sh('hostname'), machine=box.sh('cat /etc/machine-id'))
    with open(f'/proc/{box.init_pid}/stat', encoding='ascii') as f:
        names['boot'] = f.read().rsplit(')', 1)[1].split()[19]
    return names


def test_what_is_used_again_has_a_fresh_identity(tiny_data):
    """Slots (id range, user and net namespace, cgroups) are used again; identities are not."""
    with Spawner(tiny_data) as spawner:
        spawner.pool(1)
        seen, slots = [], []
        for _ in range(6):
            box = spawner.create()
            seen.append(identity(box))
            slots.append(box.slot())
            box.destroy()
    for name in ('hostname', 'machine'):
        assert len({s[name] for s in seen}) == 6, name
    # An inode number of a namespace that is gone may be used again; two in a row that live
    # at the same time may not be one, and the first process is always another.
    assert len({(s['boot'], s['pid']) for s in seen}) == 6
    assert len(set(slots)) < 6, 'slots are not used again'


def test_what_one_left_behind_the_next_does_not_find(tiny_data):
    """D10: files, processes, shared memory, message queues, counters, and sockets of any state."""
    leave = '''
    echo x > /tmp/f; echo x > /dev/shm/s; mkdir /home/user/d
    httpd -p 127.0.0.1:8080 -h /tmp
    wget -q -O /dev/null http://127.0.0.1:8080/f
    nc -l -p 9090 & bomb listeners &
    bomb sysv-messages & sleep 0.2
    ulimit -f 1
    '''
    look = 'ls -A /tmp /dev/shm /home/user; cat /proc/net/tcp /proc/net/udp | grep -c : ; cat /proc/sysvipc/msg | wc -l'
    with Spawner(tiny_data) as spawner:
        spawner.pool(1)
        fresh = spawner.create()
        clean = fresh.sh(look)
        fresh.destroy()
        for _ in range(5):
            box = spawner.create(memory=64 * MIB)
            box.run('/bin/sh', '-c', leave)
            box.destroy()
            following = spawner.create()
            assert following.stats()['pids'] == 0
            assert following.sh(look) == clean
            stats = following.stats()
            assert stats['oom_kills'] == 0 and stats['pids_refused'] == 0 and stats['cpu_us'] < 500_000
            assert stats['memory_peak_bytes'] < 48 * MIB and stats['memory_limit_bytes'] == 512 * MIB
            following.destroy()


SOCKETS = {
    'listening': 'nc -l -p 7000 & sleep 0.1',
    'of-each-family': 'bomb listeners & sleep 0.2',
    'time-wait': 'echo x > /tmp/f; httpd -p 127.0.0.1:7002 -h /tmp; for i in 1 2 3; do wget -q -O /dev/null http://127.0.0.1:7002/f; done',
    'time-wait6': 'echo x > /tmp/f; httpd -p [::1]:7003 -h /tmp; wget -q -O /dev/null http://[::1]:7003/f',
}


COUNT_SOCKETS = 'cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/unix | grep -v "local_address\\|RefCount\\|@cuvette\\|0005 03" | wc -l'


@pytest.mark.parametrize('kind', SOCKETS)
def test_D10_a_network_with_sockets_left_is_not_given_to_the_next(tiny_data, kind):
    """The next sandbox can bind the same port at once, and sees no socket."""
    with Spawner(tiny_data) as spawner:
        spawner.pool(0)         # slots are used again from now on
        for _ in range(4):
            box = spawner.create()
            assert box.sh(COUNT_SOCKETS) == '0'
            box.run('/bin/sh', '-c', SOCKETS[kind], user='0')
            assert box.sh(COUNT_SOCKETS) != '0'
            box.destroy()
            following = spawner.create()
            assert following.sh(COUNT_SOCKETS) == '0'
            following.destroy()


def test_the_abstract_name_of_init_can_not_be_taken(tiny_data):
    """A following sandbox is reached through the same name in the same network."""
    with Spawner(tiny_data) as spawner:
        spawner.pool(0)
        for _ in range(3):
            box = spawner.create()
            assert '@cuvette' in box.sh('cat /proc/net/unix')
            assert box.sh('echo ok') == 'ok'
            box.destroy()


def test_limits_of_a_running_sandbox_change_at_once(tiny_data):
    from spawner import LIMITS
    with Spawner(tiny_data) as spawner:
        box = spawner.create(memory=256 * MIB, pids=64)
        box.ask(LIMITS, memory=32 * MIB, pids=8)
        assert box.run('/bin/bomb', 'threads')[1].split()[1] == b'7'
        assert box.run('/bin/bomb', 'heap')[0] == -9
        box.ask(LIMITS, pids=32)
        assert box.run('/bin/bomb', 'threads')[1].split()[1] == b'31'
        assert box.stats()['memory_limit_bytes'] == 32 * MIB
        with pytest.raises(SpawnError, match='disk, inodes and nofile'):
            box.ask(LIMITS, disk_bytes=MIB)
        box.destroy()


def test_groups_are_killed_alone(tiny_data):
    from spawner import GROUP, GROUP_KILL
    with Spawner(tiny_data) as spawner:
        box = spawner.create()
        first, second = box.ask(GROUP), box.ask(GROUP)
        assert (first.group, second.group) == (1, 2)
        tree = '/bin/sh', '-c', 'setsid sleep 30 & sleep 30 & wait'
        one, two = (box.start(*tree, group_fd=g.fds[0]) for g in (first, second))
        other = box.start('/bin/sleep', '30')
        for g in (first, second):
            g.close()
        deadline = time.monotonic() + 20
        while box.stats()['pids'] < 7:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        box.ask(GROUP_KILL, group=1)
        assert one.wait()[0] == -9
        while box.stats()['pids'] > 4:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for survivor in (two, other):
            while survivor.step(0.1):
                pass
            assert survivor.status is None
            survivor.close()
        with pytest.raises(SpawnError, match='no group 3'):
            box.ask(GROUP_KILL, group=3)
        box.destroy()


def test_requests_for_what_is_gone(tiny_data):
    from spawner import CONNECT, DESTROY, KILL, STATS
    with Spawner(tiny_data) as spawner:
        box = spawner.create()
        box.destroy()
        for kind in (STATS, CONNECT, KILL, DESTROY):
            with pytest.raises(SpawnError, match=f'no sandbox {box.id}'):
                box.ask(kind)


@pytest.mark.parametrize('packet', [b'', b'x', b'\0' * 511, b'\0' * 512, b'\xff' * 512, b'\1\0\2\0' + b'\0' * 508,
                                    b'\1\0\2\0' + b'\xff' * 508, b'\1\0' + b'\x63\0' + b'\0' * 508, b'\0' * 513],
                         ids=range(9))
def test_a_malformed_request_is_answered_and_survived(tiny_data, packet):
    with Spawner(tiny_data) as spawner:
        if packet:
            spawner.sock.send(packet)
            spawner.sock.settimeout(20)
            assert len(spawner.sock.recv(2000)) == 1024
        box = spawner.create()
        assert box.sh('echo ok') == 'ok'
        box.destroy()


def test_twenty_in_one_spawner_do_not_reach_each_other(tiny_data):
    with Spawner(tiny_data) as spawner:
        boxes = [spawner.create() for _ in range(20)]
        assert len({b.slot() for b in boxes}) == 20
        for name in boxes[0].namespaces():
            assert len({b.namespaces()[name] for b in boxes}) == 20, name
        # A listener in one is nothing in another.
        boxes[0].start('/bin/nc', '-l', '-p', '7777')
        assert boxes[1].run('/bin/nc', '-w', '1', '127.0.0.1', '7777')[0] == 1
        with socket.socket() as s:
            assert s.connect_ex(('127.0.0.1', 7777)) != 0
        for box in boxes:
            box.destroy()
