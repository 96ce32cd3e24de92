# SPDX-License-Identifier: Apache-2.0
"""Runs the command line and keeps what came of it."""
import json
import os
import signal
import subprocess
import time

ROOT = os.environ.get('CUVETTE_SOURCE') or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get('CUVETTE_BUILD') or os.path.join(ROOT, 'build'))
# The spawner inherits it, so host.py can tell our processes from those of anybody else.
TAG = f'CUVETTE_E2E_TAG={os.getpid()}'


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    @property
    def text(self):
        return self.out.decode()

    @property
    def message(self):
        return self.err.decode(errors='replace')

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return (f'status {self.status} after {self.seconds:.3f} s\n'
                f'stdout: {self.out[-2000:]!r}\nstderr: {self.err[-2000:]!r}')


class Cli:
    def __init__(self, data, env=None):
        self.data = data
        self.program = os.path.join(BUILD, 'cuvette')
        name, value = TAG.split('=')
        self.env = dict(os.environ, CUVETTE_DATA=data, **{name: value}, **(env or {}))

    def with_env(self, **env):
        return Cli(self.data, env)

    def start(self, *args, **kwargs):
        """A running process; the caller ends it."""
        kwargs.setdefault('stdin', subprocess.DEVNULL)
        kwargs.setdefault('stdout', subprocess.PIPE)
        kwargs.setdefault('stderr', subprocess.PIPE)
        return subprocess.Popen([self.program, *map(str, args)], env=self.env, **kwargs)

    def call(self, *args, limit=60, input=None, **kwargs):
        """Runs to the end.  Later than `limit` seconds is a failure of the test, and is ended."""
        if input is not None:
            kwargs['stdin'] = subprocess.PIPE
        began = time.monotonic()
        child = self.start(*args, **kwargs)
        try:
            out, err = child.communicate(input, timeout=limit)
        except BaseException:
            child.send_signal(signal.SIGKILL)
            child.communicate()
            raise
        return Result(child.returncode, out, err, time.monotonic() - began)

    def run(self, *command, options=(), **kwargs):
        return self.call('run', *options, '--', *command, **kwargs)

    def sh(self, script, options=(), **kwargs):
        return self.run('sh', '-c', script, options=options, **kwargs)

    def py(self, code, options=(), **kwargs):
        return self.call('py', *options, '-c', code, **kwargs)

    def json(self, *command, options=(), **kwargs):
        """The object that --json prints."""
        return self.run(*command, options=('--json', *options), **kwargs).json
