"""The messages of etcd's API, encoded by hand, and a client for them that needs only a socket."""

import socket
import struct

PATIENCE_S = 600
ALL = b'\0'
KV, LEASE, WATCH = '/etcdserverpb.KV/', '/etcdserverpb.Lease/', '/etcdserverpb.Watch/Watch'
MAINTENANCE = '/etcdserverpb.Maintenance/'


# ---- Messages ----


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value) if value else b''


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def range_of(key, end=b'', **more):
    fields = {
        'limit': 3,
        'revision': 4,
        'order': 5,
        'target': 6,
        'keys_only': 8,
        'count_only': 9,
        'min_mod': 10,
        'max_mod': 11,
    }
    return (
        text(1, key)
        + (text(2, end) if end else b'')
        + b''.join(number(fields[name], value) for name, value in more.items())
    )


def put_of(key, value, lease=0):
    return text(1, key) + text(2, value) + number(3, lease)


def delete_of(key, end, previous):
    return text(1, key) + text(2, end) + number(3, previous)


def txn_of(success=(), failure=(), compares=()):
    return (
        b''.join(text(1, one) for one in compares)
        + b''.join(text(2, one) for one in success)
        + b''.join(text(3, one) for one in failure)
    )


def fields(data):
    """Returns the last value of each field of a message."""
    at, found = 0, {}

    def take():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = take()
        value = take()
        if tag & 7 == 2:
            value, at = data[at : at + value], at + value
        found[tag >> 3] = value
    return found


# ---- The client: HTTP/2 without header compression ----


def literal(name_index, name, value):
    head = (
        b'\0' + bytes([len(name)]) + name
        if name_index == 0
        else bytes([name_index]) if name_index < 15 else b'\x0f' + bytes([name_index - 15])
    )
    return head + bytes([len(value)]) + value


class Client:
    """One connection, one call at a time; a request must fit into the initial windows of the server."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, PATIENCE_S)
        self.stream = -1
        self.rest = b''
        settings = struct.pack('>HI', 4, 0x7FFFFFFF)
        self.socket.sendall(
            b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
            + self.frame(4, 0, 0, settings)
            + self.frame(8, 0, 0, struct.pack('>I', 0x7FFF0000 - 65535))
        )

    @staticmethod
    def frame(kind, flags, stream, payload):
        return (
            struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload
        )

    def begin(self, path, messages, is_last=True):
        self.stream += 2
        head = (
            b'\x83\x86'
            + literal(4, b'', path.encode())
            + literal(1, b'', b'localhost')
            + literal(31, b'', b'application/grpc')
            + literal(0, b'te', b'trailers')
        )
        data = b''.join(b'\0' + struct.pack('>I', len(message)) + message for message in messages)
        frames = [self.frame(1, 4, self.stream, head)]
        for at in range(0, len(data), 16384):
            frames.append(self.frame(0, 0, self.stream, data[at : at + 16384]))
        if is_last:
            frames.append(self.frame(0, 1, self.stream, b''))
        self.socket.sendall(b''.join(frames))
        return self.stream

    def take(self, size):
        parts = [self.rest]
        have = len(self.rest)
        while have < size:
            part = self.socket.recv(1 << 20)
            if not part:
                raise SystemExit('the server closed the connection')
            parts.append(part)
            have += len(part)
        whole = b''.join(parts)
        self.rest = whole[size:]
        return whole[:size]

    def next(self):
        """Returns the data of the current stream, and whether it has ended."""
        while True:
            head = self.take(9)
            size, kind, flags = struct.unpack('>I', b'\0' + head[:3])[0], head[3], head[4]
            payload = self.take(size)
            if kind == 4 and not flags & 1:
                self.socket.sendall(self.frame(4, 1, 0, b''))
            elif kind == 6 and not flags & 1:
                self.socket.sendall(self.frame(6, 1, 0, payload))
            elif kind == 7 or (kind == 3 and struct.unpack('>I', head[5:])[0] == self.stream):
                raise SystemExit(f'the server ended the stream: frame {kind}, {payload!r}')
            elif kind in (0, 1) and struct.unpack('>I', head[5:])[0] == self.stream:
                return payload if kind == 0 else b'', bool(flags & 1)

    def call(self, path, message=b''):
        """Returns the frames of the answer; empty: the call failed."""
        self.begin(path, [message])
        parts, is_over = [], False
        while not is_over:
            data, is_over = self.next()
            parts.append(data)
        return b''.join(parts)

    def ask(self, path, message=b''):
        """Returns the number of bytes of the answer; 0: the call failed."""
        return len(self.call(path, message))
