# SPDX-License-Identifier: Apache-2.0
"""What a sandbox can reach, and what its files can do to the host.

Names are the ids of the public bug reports that each input comes from.
"""
import os
import socket
import stat
import subprocess

import pytest

NET_PROBE = r'''
import errno, socket
def attempt(name, f):
    try: print(name, f())
    except OSError as e: print(name, errno.errorcode.get(e.errno, e.errno))
def connect(family, kind, address):
    def f():
        s = socket.socket(family, kind); s.settimeout(3); s.connect(address); s.send(b"x"); return "REACHED"
    return f
attempt("tcp", connect(socket.AF_INET, socket.SOCK_STREAM, ("93.184.216.34", 80)))
attempt("udp", connect(socket.AF_INET, socket.SOCK_DGRAM, ("8.8.8.8", 53)))
attempt("metadata", connect(socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80)))
attempt("private", connect(socket.AF_INET, socket.SOCK_STREAM, ("10.0.0.1", 80)))
attempt("host", connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", PORT)))
attempt("broadcast", connect(socket.AF_INET, socket.SOCK_DGRAM, ("255.255.255.255", 9)))
attempt("multicast", connect(socket.AF_INET, socket.SOCK_DGRAM, ("224.0.0.1", 9)))
attempt("tcp6", connect(socket.AF_INET6, socket.SOCK_STREAM, ("2606:2800:220:1::1", 80)))
attempt("linklocal6", connect(socket.AF_INET6, socket.SOCK_DGRAM, ("fe80::1", 53)))
attempt("dns", lambda: socket.getaddrinfo("example.com", 80) and "REACHED")
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) and "REACHED")
attempt("packet", lambda: socket.socket(17, socket.SOCK_RAW) and "REACHED")
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM) and "REACHED")
attempt("alg", lambda: socket.socket(38, 5) and "REACHED")
attempt("abstract", connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0cuvette-e2e-host"))
'''


@pytest.mark.parametrize('options', [(), ('--net', 'none')], ids=['default', 'none'])
@pytest.mark.parametrize('user', ['1000', 'root'])
def test_F04_nothing_is_reachable(full, options, user):
    """Neither by default nor by name; TCP, UDP, DNS, IPv6, raw, vsock, and the host's own sockets."""
    with socket.create_server(('127.0.0.1', 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind('\0cuvette-e2e-host')
        abstract.listen()
        code = NET_PROBE.replace('PORT', str(server.getsockname()[1]))
        r = full.py(code, options=(*options, '--user', user, '--timeout', '50s'))
    seen = dict(line.split(' ', 1) for line in r.text.splitlines())
    assert len(seen) == 15 and 'REACHED' not in r.text, seen
    for name in ('tcp', 'udp', 'metadata', 'private', 'broadcast', 'multicast', 'tcp6'):
        assert seen[name] == 'ENETUNREACH', seen
    assert seen['host'] == seen['abstract'] == 'ECONNREFUSED'
    assert seen['raw'] == seen['packet'] == seen['vsock'] == seen['alg'] == 'EAFNOSUPPORT' or \
        all(seen[n] in ('EAFNOSUPPORT', 'EPERM', 'EPROTONOSUPPORT', 'ESOCKTNOSUPPORT') for n in ('raw', 'packet', 'vsock', 'alg'))


@pytest.mark.parametrize('net', ['', 'all', 'open', 'example.com', 'None', 'none '])
def test_F04_a_network_that_is_not_to_be_had_is_refused(tiny, net):
    """Never less isolated, and never silently something else than was asked for."""
    r = tiny.run('echo', 'ran', options=('--net', net))
    assert r.status == 125 and r.out == b'' and '--net' in r.message


def test_F07_sockets_of_its_own_work(full):
    code = '''
import socket
a, b = socket.socketpair(); a.send(b"x"); print(b.recv(1))
for address in ("/tmp/s", "\\0mine"):
    l = socket.socket(socket.AF_UNIX); l.bind(address); l.listen()
    c = socket.socket(socket.AF_UNIX); c.connect(address); s, _ = l.accept(); c.send(b"y"); print(s.recv(1))
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    l = socket.socket(family); l.bind((host, 0)); l.listen()
    c = socket.socket(family); c.connect(l.getsockname()[:2]); s, _ = l.accept(); c.send(b"z"); print(s.recv(1))
l = socket.socket(); l.bind(("127.0.0.1", 80)); print("low port")
'''
    assert full.py(code).out == b"b'x'\n" + b"b'y'\n" * 2 + b"b'z'\n" * 2 + b'low port\n'


def test_F07_sockets_of_the_host_are_not_there(tiny, tmp_path):
    path = '/var/tmp/cuvette-e2e-socket'
    with socket.socket(socket.AF_UNIX) as s:
        if os.path.exists(path):
            os.unlink(path)
        s.bind(path)
        try:
            r = tiny.sh('find / -type s 2>/dev/null')
        finally:
            os.unlink(path)
    assert r.out == b''


# ---- F12: never weaker than asked ----

def as_nobody(cli, *args):
    return cli.call(*args, preexec_fn=lambda: (os.setgid(65534), os.setuid(65534)), cwd='/')


def test_F12_without_root_it_refuses_and_says_why(tiny):
    r = as_nobody(tiny, 'run', '--', 'echo', 'ran')
    assert r.status == 125 and r.out == b'' and 'root' in r.message and len(r.message.splitlines()) == 1


@pytest.mark.parametrize('wrapper, named', [
    (['unshare', '--user', '--map-root-user'], ''),
    (['setpriv', '--bounding-set', '-sys_admin'], ''),
    (['setpriv', '--bounding-set', '-setuid'], ''),
])
def test_F12_inside_another_sandbox_it_refuses(tiny, wrapper, named):
    """With a part of the privileges, a sandbox is either whole or not made."""
    r = subprocess.run([*wrapper, tiny.program, 'run', '--', 'echo', 'ran'], env=tiny.env, capture_output=True,
                       stdin=subprocess.DEVNULL, check=False)
    assert r.returncode == 125 and r.stdout == b'' and r.stderr.startswith(b'cuvette: ')
    assert len(r.stderr.splitlines()) == 1


def test_F12_doctor_names_the_layer(tiny):
    r = as_nobody(tiny, 'doctor')
    assert r.status != 0 and 'root' in (r.text + r.message)


# ---- F13, F14, C19: paths and links ----

def test_F14_a_host_path_is_copied_never_mounted(tiny, tmp_path):
    (tmp_path / 'f').write_text('host\n')
    r = tiny.sh('echo inside > f; cat f', options=('--in', f'{tmp_path}/f:f'))
    assert r.out == b'inside\n' and (tmp_path / 'f').read_text() == 'host\n'
    assert tiny.sh('cat /proc/self/mountinfo', options=('--in', f'{tmp_path}/f:f')).text.count(str(tmp_path)) == 0


@pytest.mark.parametrize('box', ['/proc/x', '/sys/x', '/dev/x', '/dev/null/x'])
def test_F13_what_can_not_be_written_is_an_error_before_the_command(tiny, tmp_path, box):
    (tmp_path / 'f').write_text('x')
    r = tiny.run('echo', 'ran', options=('--in', f'{tmp_path}/f:{box}'))
    assert r.status == 125 and r.out == b'' and box in r.message


def test_F13_what_is_missing_on_the_host_is_an_error_before_the_command(tiny):
    r = tiny.run('echo', 'ran', options=('--in', '/no/such/file:f'))
    assert r.status == 125 and r.out == b'' and '/no/such/file' in r.message


LINKS = ('mkdir t t/sub; echo x > t/real; ln -s /etc t/d; ln -s /etc/passwd t/l; ln -s ../../../../etc t/e; '
         'ln -s sub t/s; ln -s loop t/loop; ln -s /nothing t/dangling; ln t/real t/hard')


def test_C19_links_come_out_as_links(tiny, tmp_path):
    r = tiny.sh(LINKS, options=('--out', f't:{tmp_path}/out'))
    assert r.status == 0, r
    targets = {n: os.readlink(tmp_path / 'out' / n) for n in os.listdir(tmp_path / 'out')
               if os.path.islink(tmp_path / 'out' / n)}
    assert targets == {'d': '/etc', 'l': '/etc/passwd', 'e': '../../../../etc', 's': 'sub', 'loop': 'loop',
                       'dangling': '/nothing'}
    assert (tmp_path / 'out/real').read_text() == 'x\n'


def test_C19_one_link_is_a_link_too(tiny, tmp_path):
    assert tiny.sh('ln -s /etc/shadow l', options=('--out', f'l:{tmp_path}/l')).status == 0
    assert os.readlink(tmp_path / 'l') == '/etc/shadow'


def test_C19_a_second_copy_never_goes_through_the_links_of_the_first(tiny, tmp_path):
    """d was a link to a directory of the host, and is a directory the next time."""
    victim = tmp_path / 'victim'
    victim.mkdir()
    options, out = ('--out', f't:{tmp_path}/'), tmp_path / 't'
    assert tiny.sh(f'mkdir t; ln -s {victim} t/d; ln -s {victim}/file t/f', options=options).status == 0
    assert os.path.islink(out / 'd') and os.path.islink(out / 'f')
    r = tiny.sh('mkdir -p t/d; echo owned > t/d/new; echo owned > t/f', options=options)
    assert os.listdir(victim) == []
    assert r.status == 1 and 'd is a symbolic link here, and links are not followed' in r.message
    assert (out / 'f').read_text() == 'owned\n' and not os.path.islink(out / 'f')


def test_C19_paths_inside_never_leave_the_sandbox(tiny, tmp_path):
    for path in ('../../../../../../etc/issue', '/../../etc/issue', '/root/link/../../../etc/issue'):
        r = tiny.sh('echo inside > /etc/issue; ln -s / link', options=('--user', 'root', '--out', f'{path}:{tmp_path}/h'))
        assert r.status == 0 and (tmp_path / 'h').read_text() == 'inside\n'


def test_C19_links_go_in_as_links(tiny, tmp_path):
    tree = tmp_path / 'tree'
    (tree / 'sub').mkdir(parents=True)
    secret = tmp_path / 'secret'
    secret.write_text('host secret')
    os.symlink(secret, tree / 'l')
    os.symlink('/etc', tree / 'd')
    os.symlink('sub', tree / 's')
    r = tiny.sh('for l in l d s; do readlink tree/$l; done; cat tree/l', options=('--in', f'{tree}:tree'))
    assert r.out.decode().splitlines() == [str(secret), '/etc', 'sub'] and b'host secret' not in r.out


def test_C19_a_link_inside_does_not_carry_a_copy_elsewhere_on_the_host(tiny, tmp_path):
    (tmp_path / 'f').write_text('data\n')
    mark = '/tmp/cuvette-e2e-must-not-exist'
    r = tiny.run('cat', '/etc/f', options=('--user', 'root', '--in', f'{tmp_path}/f:/etc/f'))
    assert r.out == b'data\n' and not os.path.exists('/etc/f') and not os.path.exists(mark)


def test_C19_special_files_are_left_out_and_counted(tiny, tmp_path):
    r = tiny.sh('mkdir t; mkfifo t/pipe; echo x > t/file', options=('--out', f't:{tmp_path}/out'))
    assert r.status == 0 and os.listdir(tmp_path / 'out') == ['file']
    assert 'special file' in r.message and 'pipe' in r.message


@pytest.mark.parametrize('name', ["a';touch pwn;'.txt", '$(touch pwn)', '`id`', '-rf', 'a b', 'naïve "q" 文.txt',
                                  'new\nline', '\\', '*', ' ', 'x' * 255])
def test_C11_names_are_names(tiny, tmp_path, name):
    (tmp_path / name).write_bytes(b'data')
    colon = name.replace('\\', '\\\\').replace(':', '\\:')
    r = tiny.run('sh', '-c', 'cat -- "$1"; ls pwn 2>/dev/null; mkdir o; cp -- "$1" o/', '-', name,
                 options=('--in', f'{tmp_path}/{colon}:/home/user/{colon}', '--out', f'o:{tmp_path}/out'))
    assert r.out == b'data', r
    assert os.listdir(tmp_path / 'out') == [name]


# ---- C14: loops ----

def test_C14_a_link_loop_is_listed_and_its_reading_an_error(tiny, tmp_path):
    r = tiny.sh('mkdir t; cd t; ln -s b a; ln -s a b; echo x > c', options=('--out', f't:{tmp_path}/out'))
    assert r.status == 0 and sorted(os.listdir(tmp_path / 'out')) == ['a', 'b', 'c']
    r = tiny.sh('ln -s b a; ln -s a b; cat a')
    assert r.status == 1 and 'symbolic link' in r.message
    r = tiny.sh('ln -s l l', options=('--out', f'l/z:{tmp_path}/z'))
    assert r.status == 1 and 'symbolic link' in r.message.lower()


def test_C14_a_working_directory_that_is_a_loop(tiny, tmp_path):
    os.symlink('loop', tmp_path / 'loop')
    r = tiny.run('pwd', options=('--in', f'{tmp_path}:/tmp/t', '--cwd', '/tmp/t/loop'))
    assert r.status == 125 and 'symbolic link' in r.message.lower()


# ---- C24: owners and modes ----

def test_C24_what_was_copied_in_belongs_to_the_user(tiny, tmp_path):
    (tmp_path / 'f').write_text('one\n')
    (tmp_path / 'dir').mkdir()
    (tmp_path / 'dir/g').write_text('two\n')
    options = ('--in', f'{tmp_path}/f:f', '--in', f'{tmp_path}/dir:dir')
    r = tiny.sh('echo x >> f; echo y >> dir/g; touch dir/new; cat f dir/g; stat -c %u:%g f dir dir/g', options=options)
    assert r.text == 'one\nx\ntwo\ny\n' + '1000:1000\n' * 3
    r = tiny.sh('stat -c %u:%g f dir dir/g; pwd', options=(*options, '--user', 'root'))
    assert r.text == '0:0\n' * 3 + '/root\n'


def test_C24_modes_are_kept_but_for_setuid(tiny, tmp_path):
    for name, mode in (('x', 0o755), ('ro', 0o444), ('suid', 0o6755), ('sticky', 0o1700), ('none', 0o000)):
        (tmp_path / name).write_text('')
        os.chmod(tmp_path / name, mode)
    r = tiny.sh('cd /tmp/t && stat -c "%n %a" *', options=('--in', f'{tmp_path}:/tmp/t'))
    assert r.text == 'none 0\nro 444\nsticky 700\nsuid 755\nx 755\n'


def test_C24_setuid_does_not_come_out_either(tiny, tmp_path):
    r = tiny.sh('cp /bin/busybox s; chmod 6755 s; mkdir d; chmod 3777 d',
                options=('--user', 'root', '--out', f's:{tmp_path}/s', '--out', f'd:{tmp_path}/d'))
    assert r.status == 0
    assert stat.S_IMODE(os.stat(tmp_path / 's').st_mode) == 0o755
    assert stat.S_IMODE(os.stat(tmp_path / 'd').st_mode) == 0o777


# ---- C29: dotfiles ----

def test_C29_dotfiles_go_in_and_come_out(tiny, tmp_path):
    tree = tmp_path / 'tree'
    (tree / '.git').mkdir(parents=True)
    for name in ('.env', '.git/x', 'a.log', '.hidden.log', '...', 'empty'):
        (tree / name).write_text(name if name != 'empty' else '')
    r = tiny.sh('find tree -type f | sort; cp -r tree copy', options=('--in', f'{tree}:tree', '--out', f'copy:{tmp_path}/out'))
    assert r.text.split() == sorted(f'tree/{n}' for n in ('.env', '.git/x', 'a.log', '.hidden.log', '...', 'empty'))
    found = {os.path.relpath(os.path.join(d, f), tmp_path / 'out') for d, _, files in os.walk(tmp_path / 'out') for f in files}
    assert found == {'.env', '.git/x', 'a.log', '.hidden.log', '...', 'empty'}
    assert (tmp_path / 'out/.git/x').read_text() == '.git/x'


# ---- a sandbox is not the host ----

def test_F14_nothing_of_the_host_shows(tiny):
    r = tiny.sh('hostname; id -u; ps | wc -l; cat /proc/1/comm; ls /; mount', options=('--user', 'root'))
    assert socket.gethostname() not in r.text.splitlines()
    assert 'cuvette-init' in r.text
    for line in r.text.splitlines():
        assert '/var/lib' not in line and '/var/tmp' not in line


def test_F14_two_sandboxes_do_not_see_each_other(tiny):
    first = tiny.start('run', '--', 'sh', '-c', 'echo secret > /tmp/f; echo ready; sleep 20')
    assert first.stdout.readline() == b'ready\n'
    try:
        r = tiny.sh('ls /tmp; ps -o args; cat /tmp/f', options=('--user', 'root'))
    finally:
        first.kill()
        first.wait()
        first.stdout.close()
        first.stderr.close()
    assert b'secret' not in r.out and b'sleep 20' not in r.out and r.status == 1
