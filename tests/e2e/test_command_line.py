# SPDX-License-Identifier: Apache-2.0
"""The command line in odd surroundings."""
import pytest


@pytest.mark.parametrize('args', [
    ('version',), ('help',), ('--help',), ('run', '--help'), ('help', '--completion', 'bash'), ('doctor', '--json'),
    ('run', '--json', '--', 'true'),
], ids=' '.join)
def test_output_that_is_lost_is_no_success(tiny, args):
    with open('/dev/full', 'wb') as full:
        result = tiny.call(*args, stdout=full)
    assert result.status == 1
    assert result.message.endswith('cuvette: cannot write to standard output\n')


def test_output_that_is_lost_does_not_hide_the_status(tiny):
    with open('/dev/full', 'wb') as full:
        assert tiny.run('sh', '-c', 'exit 3', options=('--json',), stdout=full).status == 3
