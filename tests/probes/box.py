# SPDX-License-Identifier: Apache-2.0
"""Sandboxes for the probes, what surrounds them on the host, and the report."""
import os
import shutil
import socket
import subprocess
import tempfile

PROGRAM_INSIDE = '/tmp/cuvette-probe'
HOST_ABSTRACT = 'cuvette-probe-host'


class Report:
    """Prints one line per probe as it is known, in our own form or as TAP."""

    def __init__(self, tap):
        self.tap = tap
        self.passed = self.failed = self.number = 0

    def line(self, text):
        print(text, flush=True)

    def ok(self, name):
        self.passed += 1
        self.number += 1
        self.line(f'ok {self.number} - {name}' if self.tap else f'ok {name}')

    def not_ok(self, name, why):
        self.failed += 1
        self.number += 1
        why = why.encode('unicode_escape').decode()     # what comes from inside may hold anything
        self.line(f'not ok {self.number} - {name}: {why}' if self.tap else f'NOT ok {name}: {why}')

    def check(self, name, got, *wanted):
        """`got` is one of the wanted words."""
        if got in wanted:
            self.ok(f'host/{name}')
        else:
            self.not_ok(f'host/{name}', f'got {got}, want {" or ".join(wanted)}')

    def skip(self, name, why=''):
        if self.tap:
            self.number += 1
            self.line(f'ok {self.number} - {name} # SKIP {why}')
        else:
            self.line(f'skip {name}' + (f': {why}' if why else ''))

    def later(self, name, reason):
        self.line(('# ' if self.tap else '') + f'later {name} ({reason})')

    def comment(self, text):
        self.line(f'# {text}')

    def give_up(self, why, failed=False):
        if self.tap and not failed:
            self.line(f'1..0 # SKIP {why}')
            return 0
        self.line(f'Bail out! {why}' if self.tap else f'probes: {why}')
        return 1

    def finish(self, minimum):
        total = self.passed + self.failed
        if total < minimum:
            self.not_ok('host/minimum', f'got {total} probes, want at least {minimum}')
            total += 1
        if self.tap:
            self.line(f'1..{self.number}')
            self.line(f'# {total} probes, {self.passed} ok, {self.failed} not ok')
        else:
            self.line(f'{total} probes, {self.passed} ok, {self.failed} not ok')
        return 1 if self.failed else 0


def find_program(build, name, folder):
    """Beside each other in the build folder, or where Meson put it."""
    for path in (os.path.join(build, name), os.path.join(build, folder, name)):
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return os.path.join(build, name)


class Box:
    """Runs things in fresh sandboxes, with the programs of one build."""

    def __init__(self, build):
        self.build = build
        self.cuvette = find_program(build, 'cuvette', 'src/cli')
        self.init = find_program(build, 'cuvette-init', 'src/init')
        self.spawner = find_program(build, 'cuvette-spawner', 'src/spawner')
        self.test_spawner = find_program(build, 'cuvette-spawner-test', 'src/spawner')
        self.program = find_program(build, 'cuvette-probe', 'tests/probes')
        self.data = os.environ.get('CUVETTE_DATA') or '/var/lib/cuvette'

    def is_built(self):
        return os.access(self.cuvette, os.X_OK) and os.access(self.program, os.X_OK)

    def has_test_spawner(self):
        return os.access(self.test_spawner, os.X_OK)

    def environment(self, bare):
        env = {k: v for k, v in os.environ.items() if k not in ('CUVETTE_SPAWNER', 'CUVETTE_TEST_NO_FILTER')}
        if bare:
            env.update(CUVETTE_SPAWNER=self.test_spawner, CUVETTE_TEST_NO_FILTER='1')
        return env

    def command(self, words, options=()):
        """The probe's own program comes along; `words` are its arguments."""
        return [self.cuvette, 'run', '--in', f'{self.program}:{PROGRAM_INSIDE}', '--timeout', '300s', *options,
                '--', PROGRAM_INSIDE, *words]

    def run(self, command, bare=False, timeout=60, stdin=None):
        """To its end; what it printed as text (bytes that are no text are kept as surrogates)."""
        try:
            return subprocess.run(command, env=self.environment(bare), timeout=timeout, stdin=stdin or subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8',
                                  errors='surrogateescape', check=False)
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(command, 'hung', str(late.stdout or ''), str(late.stderr or ''))

    def probe(self, words, options=(), bare=False, timeout=60):
        return self.run(self.command(words, options), bare=bare, timeout=timeout)

    def act(self, *words, options=(), timeout=60):
        return self.run(self.command(['act', *words], options), timeout=timeout)

    def start(self, *words, options=()):
        """In the background; its standard input stays open until stop()."""
        return subprocess.Popen(self.command(['act', *words], options), env=self.environment(False),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                encoding='utf-8', errors='surrogateescape')

    def template_file(self, path):
        """A file of the default template as it is on the host, or None."""
        target = os.path.join(self.data, 'templates', 'names', 'default')
        found = os.path.join(os.path.dirname(target), os.readlink(target), 'rootfs', path.lstrip('/')) \
            if os.path.islink(target) else ''
        return os.path.normpath(found) if found and os.path.isfile(found) else None


def stop(child, timeout=20):
    """Ends what start() began; its output."""
    try:
        return child.communicate('', timeout=timeout)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.communicate()


def host_addresses():
    """Every address that an interface of the host has, loopback aside."""
    text = subprocess.run(['ip', '-o', 'addr', 'show', 'scope', 'global'], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, encoding='utf-8', check=False).stdout \
        if shutil.which('ip') else ''
    found = [line.split()[3].split('/')[0] for line in text.splitlines()]
    if not found:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.connect(('192.0.2.1', 9))
                found.append(s.getsockname()[0])
            except OSError:
                pass
    # A machine without any address is reached by nobody; the documentation's own stands in.
    return [a for a in found if ':' not in a] or ['192.0.2.1']


class Surroundings:
    """What must be out of reach: sockets, a file, processes of the host, and another sandbox."""

    def __init__(self, box):
        self.box = box
        self.complaint = None

    def __enter__(self):
        self.scratch = tempfile.mkdtemp(prefix='cuvette-probes-', dir='/var/tmp')
        self.token = 'host-secret-' + os.urandom(8).hex()
        self.secret = os.path.join(self.scratch, 'secret')
        with open(self.secret, 'w', encoding='ascii') as f:
            f.write(self.token + '\n')
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind('\0' + HOST_ABSTRACT)
        self.abstract.listen(8)
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(os.path.join(self.scratch, 'socket'))
        self.unix.listen(8)
        self.tcp = socket.create_server(('0.0.0.0', 0))
        self.sleeper = subprocess.Popen(['sleep', '3600'])
        self.holder = self.box.start('hold')
        if self.holder.stdout.readline().strip() != 'holding':
            self.complaint = f'got {stop(self.holder)[1].strip()!r}, want another sandbox to hold its names'
        return self

    def __exit__(self, *why):
        if self.holder.poll() is None:
            stop(self.holder)
        self.sleeper.kill()
        self.sleeper.wait()
        for s in (self.abstract, self.unix, self.tcp):
            s.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def host_paths(self):
        """Exist here and must not exist inside."""
        candidates = [self.secret, os.path.join(self.scratch, 'socket'), self.box.build, self.box.data,
                      self.box.template_file('/etc/passwd'), '/run/cuvette', '/run/cuvetted.sock']
        return [p for p in candidates if p and os.path.exists(p)]

    def host_pids(self):
        # Small numbers are taken inside as well.
        return [p for p in (os.getpid(), os.getppid(), self.sleeper.pid, self.holder.pid) if p > 500]

    def probe_options(self):
        words = ['--host-abstract', HOST_ABSTRACT, '--host-port', str(self.tcp.getsockname()[1])]
        for path in self.host_paths():
            words += ['--host-path', path]
        for pid in self.host_pids():
            words += ['--host-pid', str(pid)]
        for address in host_addresses()[:16]:
            words += ['--host-address', address]
        return words
