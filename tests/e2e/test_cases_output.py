# SPDX-License-Identifier: Apache-2.0
"""Output: every byte, in order, once, and the exit status after the last of them.

Names are the ids of the public bug reports that each input comes from.
"""
import base64
import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest

# ---- A01: characters in pieces ----


def in_pieces(*pieces):
    """Prints each piece with a write of its own, 50 ms apart."""
    return '; sleep 0.05; '.join("printf '" + ''.join(f'\\{b:03o}' for b in p) + "'" for p in pieces)


def cut(text, encoding='utf-8'):
    return [bytes([b]) for b in text.encode(encoding)]


def test_A01_a_character_split_across_two_writes_arrives_once(tiny):
    script = "printf '\\360\\237'; sleep 0.2; printf '\\230\\200'"
    assert tiny.sh(script).text == '\N{GRINNING FACE}'
    d = tiny.json('sh', '-c', script)
    assert d['stdout'] == '\N{GRINNING FACE}' and 'stdout_base64' not in d


@pytest.mark.parametrize('text', ['é', '文', '\U0001f600', 'e\u0301', '\u200d', '\U0010ffff', 'ß文\U0001f600x'])
def test_A01_a_character_split_at_every_byte_arrives_once(tiny, text):
    d = tiny.json('sh', '-c', in_pieces(*cut(text)))
    assert d['stdout'] == text and 'stdout_base64' not in d


def test_A01_stderr_has_a_decoder_of_its_own(tiny):
    script = "printf '\\360\\237'; printf '\\346' >&2; sleep 0.1; printf '\\230\\200'; printf '\\226\\207' >&2"
    d = tiny.json('sh', '-c', script)
    assert (d['stdout'], d['stderr']) == ('\N{GRINNING FACE}', '文')


@pytest.mark.parametrize('data, text', [
    (b'ok\xf0\x9f', 'ok\ufffd'),                    # ends in the middle of a character
    (b'\xff\xfe', '\ufffd\ufffd'),
    (b'\xc0\xaf', '\ufffd\ufffd'),                  # overlong
    (b'\xed\xa0\x80', '\ufffd\ufffd\ufffd'),        # surrogate
    (b'\xf4\x90\x80\x80', '\ufffd' * 4),            # past U+10FFFF
    (b'a\xe6\x96x', 'a\ufffdx'),
    ('é'.encode('latin-1'), '\ufffd'),
])
def test_A01_bytes_that_are_no_text_are_replaced_and_kept(tiny, data, text):
    d = tiny.json('sh', '-c', in_pieces(data))
    assert d['stdout'] == text
    assert base64.b64decode(d['stdout_base64']) == data
    assert d['stdout_bytes'] == len(data)


def test_A01_a_cut_by_the_output_limit_leaves_no_broken_character(tiny):
    d = tiny.json('sh', '-c', 'printf xx文文文', options=('--output-limit', '6'))
    assert d['stdout'] == 'xx文' and d['truncated'] is True and d['stdout_bytes'] == 11


def test_A01_terminal_output_is_not_touched(tiny):
    r = tiny.call('run', '--tty', '--', 'sh', '-c', in_pieces(*cut('\U0001f600')))
    assert r.out == '\U0001f600'.encode()


# ---- A03: long output ----

LINES = 'yes 0123456789abcdef | head -c {}'


def flood_seconds(tiny, count):
    began = time.monotonic()
    child = tiny.start('run', '--', 'sh', '-c', LINES.format(count), stderr=subprocess.DEVNULL)
    got = 0
    while data := os.read(child.stdout.fileno(), 1 << 20):
        got += len(data)
    child.stdout.close()
    assert child.wait() == 0 and got == count
    return time.monotonic() - began


def test_A03_long_output_takes_linear_time(tiny):
    """Medians of three, interleaved; the constant part of a run is taken off both."""
    empty, once, twice = [], [], []
    for _ in range(3):
        empty.append(flood_seconds(tiny, 0))
        once.append(flood_seconds(tiny, 50_000_000))
        twice.append(flood_seconds(tiny, 100_000_000))
    base = sorted(empty)[1]
    assert min(twice) - base <= 2.2 * (sorted(once)[1] - base) + 0.2, (empty, once, twice)


def test_A03_200_MB_are_counted_and_capped(tiny):
    d = tiny.json('sh', '-c', LINES.format(200_000_000))
    assert d['stdout_bytes'] == 200_000_000 and d['truncated'] is True
    assert len(d['stdout']) == 1 << 20 and d['stdout'].startswith('0123456789abcdef\n0123')
    assert d['limit']['kind'] == 'output' and d['limit']['peak'] == 200_000_000
    assert d['exit_code'] == 0
    assert d['memory']['peak_bytes'] < 32 << 20


def test_A03_both_streams_are_capped_apart(tiny):
    d = tiny.json('sh', '-c', 'head -c 3000 /dev/zero | tr "\\0" o; head -c 5000 /dev/zero | tr "\\0" e >&2',
                  options=('--output-limit', '4000'))
    assert d['stdout'] == 'o' * 3000 and d['stderr'] == 'e' * 4000
    assert (d['stdout_bytes'], d['stderr_bytes'], d['truncated']) == (3000, 5000, True)


@pytest.mark.parametrize('size', [1, 4095, 4096, 65535, 65536, 65537, 1 << 20])
def test_A03_output_of_every_size_is_whole(tiny, size):
    assert tiny.sh(f'head -c {size} /dev/zero').out == bytes(size)


def test_A03_exactly_the_limit_is_not_truncated(tiny):
    d = tiny.json('sh', '-c', 'printf 0123456789', options=('--output-limit', '10'))
    assert d['stdout'] == '0123456789' and d['truncated'] is False and d['limit'] is None


# ---- A10: background children ----

def test_A10_a_background_child_does_not_hold_the_answer(tiny):
    d = tiny.json('sh', '-c', 'sleep 3 & echo hi')
    assert (d['stdout'], d['exit_code']) == ('hi\n', 0)
    assert d['times']['wall_ms'] < 1000


def test_A10_in_less_than_100_ms_at_best(tiny):
    times = [tiny.json('sh', '-c', 'sleep 3 & echo hi')['times']['wall_ms'] for _ in range(5)]
    assert min(times) < 100, times


@pytest.mark.parametrize('script', [
    'setsid sleep 3 & echo hi',
    'nohup sleep 3 >/dev/null 2>&1 & echo hi',
    '(sleep 3 & sleep 3 & sleep 3) & echo hi',
    'sleep 3 | sleep 3 & echo hi',
    'sh -c "sleep 3 & exec sleep 3" 2>&1 & echo hi',
])
def test_A10_neither_do_its_relatives(tiny, script):
    d = tiny.json('sh', '-c', script)
    assert (d['stdout'], d['exit_code']) == ('hi\n', 0) and d['times']['wall_ms'] < 2000


# ---- A11: nothing is lost at the end ----

def test_A11_fast_commands_never_lose_their_output(tiny_data):
    from spawner import Spawner
    with Spawner(tiny_data) as spawner:
        box = spawner.create()
        for i in range(2000):
            assert box.run('/bin/echo', f'done {i}') == (0, b'done %d\n' % i, b'')
        box.destroy()


def test_A11_neither_through_the_command_line(tiny):
    for _ in range(50):
        assert tiny.run('echo', 'done').out == b'done\n'


# ---- A13: no text at all ----

def test_A13_random_bytes_are_text_and_bytes(tiny):
    d = tiny.json('sh', '-c', 'head -c 4096 /dev/urandom | tee /tmp/x; sha256sum /tmp/x >&2')
    data = base64.b64decode(d['stdout_base64'])
    assert len(data) == d['stdout_bytes'] == 4096
    assert '\ufffd' in d['stdout']
    import hashlib
    assert d['stderr'].split()[0] == hashlib.sha256(data).hexdigest()


def test_A13_streams_pass_every_byte(tiny):
    script = ''.join(f'\\{b:03o}' for b in range(256))
    r = tiny.sh(f"printf '{script}'; printf '{script}' >&2")
    assert r.out == r.err == bytes(range(256))


@pytest.mark.parametrize('data', [b'\0', b'a\0b\0', b'\x1b[31mred\x1b[0m\r\n', b'\xef\xbb\xbfbom', b'"\\\n\t\x7f'])
def test_A13_control_characters_survive_json(tiny, data):
    assert tiny.json('sh', '-c', in_pieces(data))['stdout'].encode() == data


# ---- A18: all lines and the status, streamed or not ----

@pytest.fixture(scope='module')
def seq():
    return ''.join(f'{i}\n' for i in range(1, 100001)).encode()


def test_A18_all_lines_and_the_status(tiny, seq):
    r = tiny.sh('seq 1 100000; exit 7')
    assert (r.status, r.out) == (7, seq)


def test_A18_the_same_in_json(tiny, seq):
    d = tiny.json('sh', '-c', 'seq 1 100000; exit 7')
    assert (d['exit_code'], d['stdout'].encode()) == (7, seq)


def test_A18_the_same_into_a_file(tiny, seq, tmp_path):
    with open(tmp_path / 'out', 'wb') as out:
        assert tiny.sh('seq 1 100000; exit 7', stdout=out).status == 7
    assert (tmp_path / 'out').read_bytes() == seq


def test_A18_the_same_through_a_slow_reader(tiny, seq):
    child = tiny.start('run', '--', 'sh', '-c', 'seq 1 100000; exit 7')
    got = b''
    while data := os.read(child.stdout.fileno(), 8192):
        got += data
        time.sleep(0.001)
    child.stdout.close()
    child.stderr.close()
    assert (child.wait(), got) == (7, seq)


def test_A18_the_same_on_a_terminal(tiny, seq):
    r = tiny.call('run', '--tty', '--', 'sh', '-c', 'stty -onlcr; seq 1 100000; exit 7')
    assert (r.status, r.out) == (7, seq)


@pytest.mark.parametrize('status', [0, 1, 2, 64, 124, 125, 126, 127, 128, 137, 143, 255])
def test_A18_every_status_is_passed_on(tiny, status):
    assert tiny.sh(f'exit {status}').status == status
    assert tiny.json('sh', '-c', f'exit {status}')['exit_code'] == status


# ---- A21: the time limit ----

def test_A21_a_timeout_is_always_a_timeout(tiny):
    """Fifty at a time limit of 2 s, ten at a time."""
    for _ in range(5):
        children = [tiny.start('run', '--json', '--timeout', '2s', '--', 'sleep', '10') for _ in range(10)]
        for child in children:
            import json
            out, _ = child.communicate(timeout=30)
            d = json.loads(out)
            assert child.returncode == 124
            assert (d['status'], d['timed_out'], d['exit_code'], d['limit']['kind']) == ('timeout', True, 124, 'time')
            assert 1900 <= d['times']['wall_ms'] < 4000


def test_A21_message_and_output_so_far(tiny):
    r = tiny.sh('echo before; sleep 10', options=('--timeout', '500ms'))
    assert (r.status, r.out) == (124, b'before\n')
    assert r.err == b'cuvette: time limit of 0.5s reached: the command and all it had started were killed\n'


@pytest.mark.parametrize('script', [
    "trap '' TERM INT HUP; while :; do sleep 1; done",
    'sleep 10 & sleep 10 & wait',
    'kill -STOP $$',
    'exec >&- 2>&-; sleep 10',
    'while :; do :; done',
])
def test_A21_whatever_the_command_does(tiny, script):
    d = tiny.json('sh', '-c', script, options=('--timeout', '300ms'))
    assert d['status'] == 'timeout' and d['exit_code'] == 124 and d['times']['wall_ms'] < 2000


# ---- J01: terminals have a size ----

def on_terminal(tiny, rows, cols, *command, resize=None):
    """Runs on a terminal of our own; with `resize`, changes its size once a line was printed."""
    import fcntl
    import struct
    import termios
    pid, master = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', rows, cols, 0, 0))
        os.execve(tiny.program, ['cuvette', 'run', '--tty', '--', *command], tiny.env)
    out = b''
    while select.select([master], [], [], 20)[0]:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        out += data
        if resize and b'\n' in out:
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', *resize, 0, 0))
            resize = None
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out


@pytest.mark.parametrize('rows, cols', [(24, 80), (50, 132), (2, 3), (4096, 4096)])
def test_J01_a_terminal_is_born_with_its_size(tiny, rows, cols):
    assert on_terminal(tiny, rows, cols, 'stty', 'size') == (0, f'{rows} {cols}\r\n'.encode())


def test_J01_without_a_terminal_of_the_caller_it_is_24_by_80(tiny):
    r = tiny.call('run', '--tty', '--', 'stty', 'size')
    assert r.out == b'24 80\r\n'


def test_J01_a_terminal_of_no_size_is_24_by_80(tiny):
    assert on_terminal(tiny, 0, 0, 'stty', 'size') == (0, b'24 80\r\n')


def test_J01_a_resize_arrives_as_SIGWINCH(tiny):
    script = 'trap "stty size; exit 5" WINCH; echo ready; while :; do sleep 0.05; done'
    status, out = on_terminal(tiny, 24, 80, 'sh', '-c', script, resize=(33, 101))
    assert (status, out) == (5, b'ready\r\n33 101\r\n')


def test_J01_the_locale_is_utf8_on_a_terminal(tiny):
    r = tiny.call('run', '--tty', '--', 'sh', '-c', 'echo $LANG; printf "┌─┐\\n"')
    assert r.out.decode() == 'C.UTF-8\r\n┌─┐\r\n'


# ---- what ends by a signal ----

@pytest.mark.parametrize('name', ['HUP', 'INT', 'QUIT', 'ILL', 'TRAP', 'ABRT', 'BUS', 'FPE', 'KILL', 'USR1', 'SEGV',
                                  'PIPE', 'ALRM', 'TERM', 'XCPU', 'SYS', 'RTMIN'])
def test_A18_every_signal_is_named(full, name):
    number = getattr(signal, 'SIG' + name)
    d = full.json('sh', '-c', f'kill -{int(number)} $$')
    assert (d['status'], d['signal'], d['exit_code']) == ('signaled', number, 128 + number)
    if name != 'RTMIN':
        assert d['signal_name'] == 'SIG' + name
