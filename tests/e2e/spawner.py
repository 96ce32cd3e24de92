# SPDX-License-Identifier: Apache-2.0
"""Speaks the protocols of src/wire to a spawner and to the init of a sandbox."""
import array
import fcntl
import os
import select
import signal
import socket
import struct
import time

from cli import BUILD, TAG

REQUEST_SIZE, REPLY_SIZE, VERSION = 512, 1024, 1
HELLO, CREATE, CONNECT, STATS, LIMITS, KILL, DESTROY, POOL, GROUP, GROUP_KILL, TERMINAL = range(1, 12)
MIB = 1 << 20
STATS_FIELDS = '''memory_bytes memory_peak_bytes memory_limit_bytes oom_kills pids pids_limit pids_refused
    cpu_us cpu_user_us cpu_system_us cpu_throttled_us cpu_milli_limit io_read_bytes io_write_bytes
    disk_used_bytes disk_limit_bytes inodes_used inodes_limit create_us'''.split()

INIT_EXEC, INIT_ERROR, INIT_STARTED, INIT_STDOUT, INIT_STDERR, INIT_EXIT = 2, 65, 66, 67, 68, 69


class SpawnError(Exception):
    pass


def pack_str(text):
    data = text.encode()
    return struct.pack('<I', len(data)) + data


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, fmt):
        values = struct.unpack_from('<' + fmt, self.data, self.at)
        self.at += struct.calcsize('<' + fmt)
        return values if len(values) > 1 else values[0]

    def str(self):
        n = self.take('I')
        self.at += n
        return self.data[self.at - n:self.at].decode(errors='replace')


class Reply:
    def __init__(self, data, fds):
        r = Reader(data)
        self.version, self.type, self.code, self.sys = r.take('HHIi')
        self.message, self.id = r.str(), r.str()
        self.init_pid, self.group, self.pooled = r.take('IIB')
        self.stats = dict(zip(STATS_FIELDS, r.take('%dQ' % len(STATS_FIELDS))))
        self.fds = fds

    def close(self):
        while self.fds:
            os.close(self.fds.pop())


class Spawner:
    def __init__(self, data, program=None):
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.digest = os.path.basename(os.readlink(os.path.join(data, 'templates/names/default')))
        program = program or os.path.join(BUILD, 'cuvette-spawner')
        high = fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, 64)
        theirs.close()
        name, value = TAG.split('=')
        self.pid = os.posix_spawn(program, [program, '--data', data], {'PATH': os.environ['PATH'], name: value},
                                  file_actions=[(os.POSIX_SPAWN_DUP2, high, 3)], setsid=True)
        os.close(high)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.pid:
            self.sock.close()
            os.waitpid(self.pid, 0)
            self.pid = 0

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.sock.close()
        self.pid = 0

    def ask(self, kind, id='', digest='', options=0, disk=0, count=0, group=0, memory=0, pids=0, cpu=0,
            disk_bytes=0, inodes=0, nofile=0, wait=30):
        packet = struct.pack('<HHIBII', VERSION, kind, options, disk, count, group) + pack_str(id) + pack_str(digest)
        packet += struct.pack('<QIIQQI', memory, pids, cpu, disk_bytes, inodes, nofile)
        self.sock.send(packet.ljust(REQUEST_SIZE, b'\0'))
        self.sock.settimeout(wait)
        data, control, _, _ = self.sock.recvmsg(REPLY_SIZE + 1, socket.CMSG_SPACE(64), socket.MSG_CMSG_CLOEXEC)
        fds = array.array('i')
        for level, type_, payload in control:
            if (level, type_) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(payload[:len(payload) - len(payload) % fds.itemsize])
        if not data:
            raise SpawnError('the spawner has ended')
        reply = Reply(data, list(fds))
        if reply.code:
            raise SpawnError(reply.message)
        return reply

    def create(self, **limits):
        return Sandbox(self, self.ask(CREATE, digest=self.digest, **limits))

    def pool(self, count, **limits):
        self.ask(POOL, digest=self.digest, count=count, **limits)


class Sandbox:
    def __init__(self, spawner, reply):
        self.spawner, self.id, self.pooled, self.init_pid = spawner, reply.id, bool(reply.pooled), reply.init_pid
        self.create_us = reply.stats['create_us']
        reply.close()

    def ask(self, kind, **fields):
        return self.spawner.ask(kind, id=self.id, **fields)

    def stats(self):
        return self.ask(STATS).stats

    def kill(self):
        self.ask(KILL)

    def destroy(self):
        return self.ask(DESTROY).stats

    def namespaces(self):
        names = ('net', 'pid', 'mnt', 'ipc', 'uts', 'user', 'cgroup')
        return {n: os.readlink(f'/proc/{self.init_pid}/ns/{n}') for n in names}

    def slot(self):
        with open(f'/proc/{self.init_pid}/uid_map', encoding='ascii') as f:
            return (int(f.read().split()[1]) - 0x10000000) // 65536

    def start(self, *argv, user='', env=(), group_fd=None):
        return Command(self, argv, user, env, group_fd)

    def run(self, *argv, **kwargs):
        """(status, stdout, stderr): status is negative for a signal."""
        return self.start(*argv, **kwargs).wait()

    def sh(self, script, **kwargs):
        status, out, err = self.run('/bin/sh', '-c', script, **kwargs)
        assert status == 0, (status, out, err)
        return out.decode().strip()


class Command:
    """A command that init runs, on a connection of its own."""

    def __init__(self, sandbox, argv, user, env, group_fd):
        reply = sandbox.ask(CONNECT)
        self.sock = socket.socket(fileno=reply.fds.pop())
        reply.close()
        body = struct.pack('<IHH', 0, 0, 0) + b''.join(pack_str(s) + b'\0' for s in (user, '', ''))
        for words in (argv, env):
            body += struct.pack('<I', len(words)) + b''.join(pack_str(w) + b'\0' for w in words)
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [group_fd]))] if group_fd is not None else []
        self.sock.sendmsg([struct.pack('<BBHI', 1, INIT_EXEC, 0, len(body)) + body], control)
        self.streams = {INIT_STDOUT: b'', INIT_STDERR: b''}
        self.status = None

    def step(self, seconds):
        """Takes one packet; False when none came in time or the command has ended."""
        if self.status is not None or not select.select([self.sock], [], [], seconds)[0]:
            return False
        packet = self.sock.recv(65544)
        if not packet:
            raise SpawnError('the connection to init has ended')
        kind, payload = packet[1], packet[8:]
        if kind in self.streams:
            self.streams[kind] += payload
        elif kind == INIT_EXIT:
            signaled, status = payload[4], payload[5]
            self.status = -status if signaled else status
        elif kind == INIT_ERROR:
            raise SpawnError(payload[14:].decode(errors='replace'))
        return True

    def wait(self, seconds=30):
        deadline = time.monotonic() + seconds
        while self.status is None:
            assert self.step(max(0, deadline - time.monotonic())) or self.status is not None, 'the command is late'
        self.sock.close()
        return self.status, self.streams[INIT_STDOUT], self.streams[INIT_STDERR]

    def close(self):
        self.sock.close()
