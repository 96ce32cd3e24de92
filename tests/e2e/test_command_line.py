# SPDX-License-Identifier: Apache-2.0
"""The command line in odd surroundings."""
import os
import resource
import shutil

import pytest

from cli import BUILD


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


def test_soft_limits_of_the_caller_do_not_reach_the_sandbox(tiny):
    """CPU time and file size would end the spawner as well."""
    def lower():
        for what, value in ((resource.RLIMIT_CPU, 3), (resource.RLIMIT_FSIZE, 4096), (resource.RLIMIT_STACK, 1 << 20),
                            (resource.RLIMIT_NPROC, 7)):
            resource.setrlimit(what, (value, resource.getrlimit(what)[1]))

    result = tiny.run('cat', '/proc/self/limits', options=('--disk-kind', 'image', '--disk', '16M'), preexec_fn=lower)
    soft = {line[:25].strip(): line[26:].split()[0] for line in result.text.splitlines()}
    for name, what in (('cpu time', resource.RLIMIT_CPU), ('file size', resource.RLIMIT_FSIZE),
                       ('processes', resource.RLIMIT_NPROC)):
        hard = resource.getrlimit(what)[1]
        assert soft['Max ' + name] in ('unlimited', str(hard)), result
    assert soft['Max stack size'] == str(8 << 20)


def test_an_installation_below_any_prefix_finds_its_programs(tiny, tmp_path):
    programs = tmp_path / 'libexec' / 'cuvette'
    programs.mkdir(parents=True)
    (tmp_path / 'bin').mkdir()
    shutil.copy(os.path.join(BUILD, 'cuvette'), tmp_path / 'bin')
    for name in ('cuvette-spawner', 'cuvette-init'):
        shutil.copy(os.path.join(BUILD, name), programs)
    installed = tiny.with_env()
    installed.program = str(tmp_path / 'bin' / 'cuvette')
    result = installed.run('echo', 'found')
    assert (result.status, result.text) == (0, 'found\n'), result


def test_the_smallest_disk_image_has_room(tiny):
    result = tiny.sh('echo x > f && cat f', options=('--disk-kind', 'image', '--disk', '1M'))
    assert (result.status, result.text) == (0, 'x\n'), result


def test_more_inodes_than_fit_into_an_image_are_named(tiny):
    result = tiny.run('true', options=('--disk-kind', 'image', '--disk', '4M', '--inodes', '16384'))
    assert result.status == 125 and 'inodes: 16384 do not fit' in result.message, result


def test_a_template_that_is_missing_is_named_with_its_place(tiny):
    for name in ('default', 'other'):
        result = tiny.run('true', options=('--data', '/nonexistent', '--template', name))
        assert result.status == 125 and name in result.message and '/nonexistent' in result.message, result
