# SPDX-License-Identifier: Apache-2.0
"""The spawner itself: what it holds, what it refuses, and how it begins with little."""
import os
import resource
import select
import signal
import time

import pytest

from spawner import POOL, Spawner, SpawnError

NO_FILTER = 4


def descriptors(spawner):
    return len(os.listdir(f'/proc/{spawner.pid}/fd'))


def children(spawner, name):
    """Those that execute a program of that name."""
    found = []
    with open(f'/proc/{spawner.pid}/task/{spawner.pid}/children', encoding='ascii') as f:
        for pid in f.read().split():
            try:
                with open(f'/proc/{pid}/comm', encoding='ascii') as comm:
                    found += [int(pid)] * (comm.read().strip() == name)
            except OSError:
                pass    # a helper that has ended
    return found


@pytest.mark.parametrize('limits', [{}, {'disk': 1, 'disk_bytes': 16 << 20}], ids=['memory', 'image'])
def test_sandboxes_leave_no_descriptor_behind(tiny_data, limits):
    with Spawner(tiny_data) as spawner:
        spawner.create(**limits).destroy()
        before = descriptors(spawner)
        for _ in range(5):
            spawner.create(**limits).destroy()
        assert descriptors(spawner) == before


def test_each_living_sandbox_costs_few_descriptors(tiny_data):
    with Spawner(tiny_data) as spawner:
        spawner.create()
        before = descriptors(spawner)
        for _ in range(5):
            spawner.create()
        # doctor counts with 8 for each.
        assert descriptors(spawner) - before <= 5 * 8


@pytest.mark.parametrize('count', [8, 16, 32, 33, 40])
def test_too_few_descriptors_are_an_error_and_no_wait(tiny, count):
    result = tiny.run('true', limit=20,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count)))
    # A spawner that may raise its limit does.
    assert result.status == 0 or (result.status == 125 and 'descriptors' in result.message), result


def test_the_soft_limit_of_descriptors_is_raised(tiny):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert tiny.run('true', preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, hard))).status == 0


def test_the_filter_can_not_be_left_out(tiny_data):
    with Spawner(tiny_data) as spawner:
        with pytest.raises(SpawnError, match='filter'):
            spawner.create(options=NO_FILTER)
        with pytest.raises(SpawnError, match='filter'):
            spawner.ask(POOL, digest=spawner.digest, count=1, options=NO_FILTER)


def test_a_pooled_one_that_was_killed_is_not_handed_out(tiny_data):
    with Spawner(tiny_data) as spawner:
        spawner.pool(1)
        deadline = time.monotonic() + 20
        while not (inits := children(spawner, 'cuvette-init')):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.1)         # it is in the pool once its creation has ended
        end = os.pidfd_open(inits[0])
        os.kill(inits[0], signal.SIGKILL)
        assert select.select([end], [], [], 10)[0]
        os.close(end)
        box = spawner.create()
        assert box.init_pid != inits[0]
        assert box.sh('echo alive') == 'alive'
