"""Opens COUNT connections to PORT, talks on each, and keeps them open until standard input closes.

Prints "open" when all are there. A process of its own, since it needs as many file descriptors as connections.
"""

import resource
import socket
import sys

port, count = int(sys.argv[1]), int(sys.argv[2])
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
wanted = count + 100
if hard != resource.RLIM_INFINITY and hard < wanted:
    sys.exit(f"this machine allows {hard} open files, {wanted} are needed")
resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
connections = []
for _ in range(count):
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(b"PING\r\n")
    connections.append(connection)
for connection in connections:
    assert connection.recv(100) == b"+PONG\r\n"
print("open", flush=True)
sys.stdin.read()
for connection in connections[::97]:
    connection.sendall(b"PING\r\n")
    assert connection.recv(100) == b"+PONG\r\n"
print("ok", flush=True)
