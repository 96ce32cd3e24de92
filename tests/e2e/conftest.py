# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests: the real programs, real templates, and a host that
must look afterwards as it did before."""
import os
import shutil
import subprocess
import tempfile

import pytest

import host
from cli import BUILD, Cli

MUST_RUN = os.environ.get('CUVETTE_TESTS_MUST_RUN') == '1'
TINY_DIRS = ('bin', 'dev', 'etc', 'home/user', 'proc', 'root', 'sys', 'tmp', 'var/tmp')
TINY_PASSWD = 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n'
TINY_GROUP = 'root:x:0:\ntty:x:5:\nuser:x:1000:\n'


def require(condition, why):
    """Skips what this machine cannot do; where tests must run, that is a failure."""
    if condition:
        return
    if MUST_RUN:
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope='session', autouse=True)
def machine():
    require(os.geteuid() == 0, 'needs root')
    for name in ('cuvette', 'cuvette-spawner', 'cuvette-init', 'cuvette-template'):
        assert os.access(os.path.join(BUILD, name), os.X_OK), f'{name} is not in {BUILD}: run make build'


def make_tiny_root(root):
    """A root filesystem of busybox and our own bomb, a few MB in all."""
    for name in TINY_DIRS:
        os.makedirs(os.path.join(root, name))
    os.chmod(os.path.join(root, 'tmp'), 0o1777)
    os.chown(os.path.join(root, 'home/user'), 1000, 1000)
    for name, text in (('passwd', TINY_PASSWD), ('group', TINY_GROUP)):
        with open(os.path.join(root, 'etc', name), 'w', encoding='ascii') as f:
            f.write(text)
    busybox = shutil.which('busybox')
    require(busybox, 'needs busybox-static')
    shutil.copy(busybox, os.path.join(root, 'bin/busybox'))
    applets = subprocess.run([busybox, '--list'], check=True, capture_output=True, text=True).stdout.split()
    for applet in applets:
        if applet != 'busybox':
            os.symlink('busybox', os.path.join(root, 'bin', applet))
    bomb = os.path.join(BUILD, 'tests/e2e/cuvette-bomb')
    shutil.copy(bomb, os.path.join(root, 'bin/bomb'))


@pytest.fixture(scope='session')
def tiny_data(machine):
    """A data directory of our own whose template 'default' is the tiny one."""
    data = tempfile.mkdtemp(prefix='cuvette-e2e-', dir='/var/tmp')
    try:
        root, tar = os.path.join(data, 'root'), os.path.join(data, 'root.tar')
        os.mkdir(root, 0o755)
        make_tiny_root(root)
        subprocess.run(['tar', '-C', root, '-cf', tar, '.'], check=True)
        subprocess.run([os.path.join(BUILD, 'cuvette'), 'template', 'import', tar, '--name', 'default',
                        '--data', data], check=True, capture_output=True)
        os.unlink(tar)
        shutil.rmtree(root)
        yield data
    finally:
        shutil.rmtree(data, ignore_errors=True)


@pytest.fixture(scope='session')
def tiny(tiny_data):
    """The command line over the tiny template: starts in milliseconds, has sh and bomb."""
    return Cli(tiny_data)


@pytest.fixture(scope='session')
def full(machine):
    """The command line over the machine's own default template, with Python."""
    cli = Cli(os.environ.get('CUVETTE_DATA', '/var/lib/cuvette'))
    require(os.path.exists(os.path.join(cli.data, 'templates/names/default')),
            f'no default template in {cli.data}: cuvette template build')
    return cli


@pytest.fixture(autouse=True)
def nothing_left(request):
    """After every test: no process, cgroup, mount, loop device or file of ours."""
    before = host.snapshot()
    yield
    host.assert_clean(before, request.getfixturevalue('tiny_data') if 'tiny_data' in request.fixturenames else None)
