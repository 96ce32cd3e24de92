# SPDX-License-Identifier: Apache-2.0
"""The spawner itself: what it holds, what it refuses, and how it begins with little."""
import os

import pytest

from spawner import Spawner


def descriptors(spawner):
    return len(os.listdir(f'/proc/{spawner.pid}/fd'))


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
