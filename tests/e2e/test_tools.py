# SPDX-License-Identifier: Apache-2.0
"""The tools that judge everything else: a wrong total would hide every other mistake."""
import os
import shutil
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)


def layers(tmp_path, **sources):
    """check-layers over a tree of SRC/FOLDER/x.c with the given texts."""
    for folder, text in sources.items():
        (tmp_path / 'src' / folder).mkdir(parents=True)
        (tmp_path / 'src' / folder / 'x.c').write_text(text)
    return run(os.path.join(ROOT, 'tools', 'check-layers.py'), str(tmp_path))


def test_permitted_includes_are_quiet(tmp_path):
    done = layers(tmp_path, wire='#include "base/err.h"\n#include "wire/x.h"\n#include "x.h"\n#include <stdio.h>\n',
                  cli='#include "engine/features.h"\n')
    assert (done.returncode, done.stdout) == (0, '')


def test_an_include_against_the_layers_is_named(tmp_path):
    done = layers(tmp_path, base='\n#  include "wire/codec.h"\n', cli='#include "engine/cgroup.h"\n')
    assert done.returncode == 1
    assert done.stdout == ('src/base/x.c:2: base may not use wire/codec.h\n'
                           'src/cli/x.c:1: cli may not use engine/cgroup.h\n')


def test_a_folder_outside_of_the_table_is_named(tmp_path):
    done = layers(tmp_path, cellar='')
    assert done.returncode == 1
    assert 'src/cellar: not in the table' in done.stdout


def totals(tmp_path, probes, *options):
    """run-tests over a tree whose only part is a script of probes; its lines and its exit status."""
    (tmp_path / 'tools').mkdir()
    (tmp_path / 'tests' / 'probes').mkdir(parents=True)
    (tmp_path / 'build').mkdir()
    shutil.copy(os.path.join(ROOT, 'tools', 'run-tests'), tmp_path / 'tools')
    script = tmp_path / 'tests' / 'probes' / 'run'
    script.write_text('#!/bin/sh\n' + probes)
    script.chmod(0o755)
    done = run(str(tmp_path / 'tools' / 'run-tests'), *options, '--only', 'probes', str(tmp_path / 'build'))
    return done.stdout.splitlines(), done.returncode


def test_totals_are_the_last_line(tmp_path):
    lines, status = totals(tmp_path, 'echo "ok a"; echo "ok b"; echo "skip c: why"; echo noise')
    assert (lines[-1], status) == ('2 passed, 0 failed', 0)
    assert (tmp_path / 'build' / 'totals').read_text() == '2 passed, 0 failed\n'


def test_one_failure_fails_everything(tmp_path):
    lines, status = totals(tmp_path, 'echo "ok a"; echo "NOT ok b: got X, want Y"; exit 1')
    assert (lines[-1], status) == ('1 passed, 1 failed', 1)


def test_a_bad_end_is_a_failure_though_every_line_was_ok(tmp_path):
    lines, status = totals(tmp_path, 'echo "ok a"; exit 3')
    assert (lines[-1], status) == ('1 passed, 1 failed', 1)
    assert 'ended with status 3' in lines[-2]


def test_no_test_is_a_failure(tmp_path):
    lines, status = totals(tmp_path, 'exit 0')
    assert (lines[-1], status) == ('0 passed, 1 failed', 1)
    assert 'no test ran' in lines[-2]


def test_what_is_late_is_ended_and_a_failure(tmp_path):
    began = time.monotonic()
    lines, status = totals(tmp_path, 'echo "ok a"; exec sleep 50', '--minutes', '0.02')
    assert (lines[-1], status) == ('1 passed, 1 failed', 1)
    assert 'out of time' in lines[-2]
    assert time.monotonic() - began < 30


def test_setup_names_a_group_that_does_not_exist():
    done = run(os.path.join(ROOT, 'tools', 'setup'), 'kitchen')
    assert done.returncode == 1
    assert done.stdout == "setup: no group 'kitchen'; the groups are build, test and bench\n"
