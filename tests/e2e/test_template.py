# SPDX-License-Identifier: Apache-2.0
"""The program cuvette-template as a whole: interrupted, twice at once, with a builder that
fails.  What archives may hold is tested in tests/unit/test-template-*.c."""
import glob
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from cli import BUILD, ROOT

PROGRAM = os.path.join(BUILD, 'cuvette-template')


@pytest.fixture
def tmp_path():
    """Not in /tmp, which a build replaces by a directory of its own."""
    path = tempfile.mkdtemp(prefix='cuvette-e2e-', dir='/var/tmp')
    yield pathlib.Path(path)
    shutil.rmtree(path)


@pytest.fixture
def data(tmp_path):
    return str(tmp_path / 'data')


@pytest.fixture
def rootfs(tmp_path):
    """A tar of busybox and nothing else."""
    root = tmp_path / 'root'
    (root / 'bin').mkdir(parents=True)
    shutil.copy(shutil.which('busybox'), root / 'bin/busybox')
    os.symlink('busybox', root / 'bin/sh')
    tar = tmp_path / 'root.tar'
    subprocess.run(['tar', '-C', root, '-cf', tar, '.'], check=True)
    return str(tar)


@pytest.fixture
def big(tmp_path):
    """A tar that takes a while: 20,000 files."""
    root = tmp_path / 'bigroot'
    root.mkdir()
    for i in range(20000):
        (root / f'file-{i}').write_text(str(i))
    tar = tmp_path / 'big.tar'
    subprocess.run(['tar', '-C', root, '-cf', tar, '.'], check=True)
    shutil.rmtree(root)
    return str(tar)


def start(data, *args, **env):
    return subprocess.Popen([PROGRAM, '--data', data, *args], env=dict(os.environ, **env), text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def call(data, *args, status=0, **env):
    child = start(data, *args, **env)
    out, err = child.communicate(timeout=120)
    assert child.returncode == status, (child.returncode, out, err)
    return out, err


def listed(data):
    return json.loads(call(data, 'list', '--json')[0])


def unfinished(data):
    return glob.glob(os.path.join(data, 'templates', '.tmp-*'))


def wait_for(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, 'waited in vain'
        time.sleep(0.005)


def test_an_import_is_listed_shown_and_removed(data, rootfs):
    out, err = call(data, 'import', rootfs, '--name', 'bb')
    assert out.startswith('template bb: ') and out.count('\n') == 1
    assert err == '', 'no progress in a pipe'
    digest = listed(data)[0]['digest']
    shown = json.loads(call(data, 'show', digest[:8], '--json')[0])
    assert shown['names'] == ['bb'] and shown['programs']['sh'] == '/bin/sh' and shown['programs']['bash'] is None
    # The same tree under another name is the same template (and has the same digest).
    again = json.loads(call(data, 'import', rootfs, '--name', 'bb2', '--json')[0])
    assert again['existed'] and again['digest'] == digest and again['names'] == ['bb', 'bb2']
    call(data, 'rm', 'bb')
    assert [t['names'] for t in listed(data)] == [['bb2']]
    call(data, 'rm', digest)
    assert listed(data) == []
    assert os.listdir(os.path.join(data, 'templates', 'names')) == []


@pytest.mark.parametrize('compress', [['gzip', '-c'], ['xz', '-0c'], ['zstd', '-qc']])
def test_compression_does_not_change_the_digest(data, rootfs, compress):
    if not shutil.which(compress[0]):
        pytest.skip(f'needs {compress[0]}')
    plain = json.loads(call(data, 'import', rootfs, '--name', 'a', '--json')[0])
    with open(rootfs + '.z', 'wb') as f:
        subprocess.run([*compress, rootfs], check=True, stdout=f)
    packed = json.loads(call(data, 'import', rootfs + '.z', '--name', 'b', '--json')[0])
    assert packed['digest'] == plain['digest']


def test_a_terminal_sees_one_line_that_rewrites_itself(data, big):
    ours, theirs = pty.openpty()
    child = subprocess.Popen([PROGRAM, '--data', data, 'import', big, '--name', 'x'], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    seen = b''
    while True:
        try:
            seen += os.read(ours, 4096)
        except OSError:         # how a terminal ends
            break
    os.close(ours)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0 and out.startswith(b'template x: ')
    assert b'\n' not in seen and seen.endswith(b'\r\033[K')
    assert re.search(rb'unpacking: \d+ files, ', seen) and b'computing the digest' in seen


def test_wrong_arguments_are_named(data, rootfs):
    for args, word in ((['frobnicate'], 'frobnicate'), ([], 'build'), (['import', rootfs], '--name'),
                       (['import', rootfs, '--name', '../x'], '--name'), (['list', '--nope'], '--nope'),
                       (['build', '--packages', 'a;b'], '--packages'), (['import'], 'FILE'),
                       (['import', rootfs, '--name', 'x', '--max-size', 'big'], '--max-size')):
        assert word in call(data, *args, status=2)[1]
    assert 'default' in call(data, 'show', status=1)[1]
    assert 'examples:' in call(data, '--help')[0]


def test_kill_9_leaves_the_old_state_and_the_next_run_cleans_up(data, rootfs, big):
    before = json.loads(call(data, 'import', rootfs, '--name', 'x', '--json')[0])
    for delay in (0, 0.05, 0.2, 0.5):
        child = start(data, 'import', big, '--name', 'x')
        wait_for(lambda: unfinished(data))
        time.sleep(delay)
        child.kill()
        child.communicate()
        names = [t['digest'] for t in listed(data) if 'x' in t['names']]
        assert names == [before['digest']] or child.returncode == 0
    call(data, 'import', rootfs, '--name', 'y')
    assert unfinished(data) == []


def test_an_interrupted_import_removes_its_files(data, big):
    child = start(data, 'import', big, '--name', 'x')
    wait_for(lambda: glob.glob(os.path.join(data, 'templates/.tmp-*/rootfs/file-*')))
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130 and 'interrupted' in err
    assert unfinished(data) == [] and listed(data) == []


def test_two_at_once_wait_for_each_other(data, rootfs, big):
    first = start(data, 'import', big, '--name', 'first')
    wait_for(lambda: unfinished(data))
    _, err = call(data, 'import', rootfs, '--name', 'second')
    assert 'waiting for another' in err
    assert first.communicate()[0].startswith('template first')
    assert {tuple(t['names']) for t in listed(data)} == {('first',), ('second',)}


# ---- build, with a stand-in for mmdebstrap ----

@pytest.fixture
def builder(tmp_path, rootfs):
    """A PATH whose apt-get knows one archive and whose mmdebstrap does what `script` says."""
    def make(script):
        bin_dir = tmp_path / 'bin'
        bin_dir.mkdir(exist_ok=True)
        for name, text in (('apt-get', 'echo "http://mirror.invalid/debian/ bookworm main Debian"'),
                           ('mmdebstrap', script.replace('ROOTFS', rootfs))):
            (bin_dir / name).write_text(f'#!/bin/sh\n{text}\n')
            (bin_dir / name).chmod(0o755)
        return f'{bin_dir}:/usr/sbin:/usr/bin:/sbin:/bin'
    return make


def test_a_build_runs_with_a_clean_environment_and_no_input(data, builder, tmp_path):
    seen = tmp_path / 'seen'
    path = builder(f'{{ env; echo INPUT=$(cat); echo "ARGS $*"; cat /tmp/all-sources; ls -l /proc/self/fd; }} > {seen}; '
                   'cat ROOTFS')
    out, _ = call(data, 'build', 'x', '--packages', 'gcc', PATH=path, BASH_ENV='/evil', ENV='/evil', SECRET_KEY='s3cret',
                  APT_CONFIG='/evil', PERL5OPT='-Mevil')
    assert out.startswith('template x: ')
    text = seen.read_text()
    for word in ('evil', 's3cret', 'BASH_ENV'):
        assert word not in text                         # B34
    assert 'INPUT=\n' in text and ',gcc ' in text
    assert 'deb http://mirror.invalid/debian/ bookworm main' in text
    # What exists is the answer, without building, until it is forced.
    again, _ = call(data, 'build', 'x', PATH='/nonexistent')
    assert 'there already' in again


def test_a_failed_build_says_why_and_leaves_nothing(data, builder):
    path = builder('head -c 100000 ROOTFS; echo "I: trying" >&2; echo "E: no such \033[31msuite" >&2; exit 3')
    _, err = call(data, 'build', status=75, PATH=path)
    assert 'mmdebstrap failed (status 3): no such' in err and '\033' not in err
    assert unfinished(data) == [] and listed(data) == []


def test_a_builder_that_is_missing_is_named(data):
    _, err = call(data, 'build', status=1, PATH='/nonexistent')
    assert 'is not installed' in err
    assert unfinished(data) == [] if os.path.exists(data) else True


@pytest.mark.parametrize('sig', [signal.SIGKILL, signal.SIGTERM])
def test_nothing_of_a_build_outlives_it(data, builder, tmp_path, sig):
    marker = tmp_path / 'started'
    path = builder(f'setsid sleep 98761 & touch {marker}; sleep 98762')
    child = start(data, 'build', PATH=path)
    wait_for(marker.exists)
    child.send_signal(sig)
    child.communicate(timeout=60)
    wait_for(lambda: subprocess.run(['pgrep', '-f', '^sleep 9876[12]$']).returncode == 1)
    with open('/proc/self/mountinfo', encoding='utf8') as f:
        assert data not in f.read()
    if sig == signal.SIGTERM:
        assert child.returncode == 130 and unfinished(data) == []
    call(data, 'list')


def test_every_option_of_the_help_is_in_the_man_page(data):
    with open(os.path.join(ROOT, 'man/cuvette-template.1.scd'), encoding='utf8') as f:
        page = f.read()
    for option in set(re.findall(r'^  (--[a-z-]+)', call(data, '--help')[0], re.M)):
        assert f'*{option}*' in page, option
