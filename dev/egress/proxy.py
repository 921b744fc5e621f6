"""A forward proxy for tests: the only way out of a network namespace.

    proxy.py ADDRESS PORT SEEN [CA_DIR]

Writes each host it was asked for into SEEN, one per line. With CA_DIR (ca.crt, ca.key) it opens TLS, with certificates
that this authority signs, as the proxies of some companies do.
"""

import os
import select
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
from urllib.parse import urlsplit

SEEN = sys.argv[3]
CA = sys.argv[4] if len(sys.argv) > 4 else None
LOCK = threading.Lock()


def note(host):
    with LOCK, open(SEEN, "a") as seen:
        seen.write(host + "\n")


def certificate(host):
    """A certificate for this host, made once."""
    pem = os.path.join(CA, host + ".pem")
    with LOCK:
        if not os.path.exists(pem):
            openssl = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                       "-days", "2", "-subj", "/CN=" + host[:60], "-addext", "subjectAltName=DNS:" + host,
                       "-addext", "basicConstraints=critical,CA:FALSE",
                       "-CA", os.path.join(CA, "ca.crt"), "-CAkey", os.path.join(CA, "ca.key"),
                       "-keyout", pem + ".key", "-out", pem + ".crt"]
            subprocess.run(openssl, check=True, stderr=subprocess.DEVNULL)
            with open(pem, "w") as whole:
                whole.write(open(pem + ".key").read() + open(pem + ".crt").read())
    return pem


def relay(one, other):
    """Copies both ways until both sides have ended."""
    open_ends = {one: other, other: one}
    while open_ends:
        # TLS may hold bytes that select does not see.
        ready = [end for end in open_ends if isinstance(end, ssl.SSLSocket) and end.pending()]
        ready = ready or select.select(list(open_ends), [], [], 120)[0]
        if not ready:
            return
        for end in ready:
            data = end.recv(65536)
            if data:
                open_ends.get(end, other).sendall(data)
            else:
                try:
                    open_ends.pop(end).shutdown(socket.SHUT_WR)
                except OSError:
                    return
                if isinstance(end, ssl.SSLSocket):
                    return


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        head = b""
        while b"\r\n\r\n" not in head:
            data = self.request.recv(4096)
            if not data:
                return
            head += data
        head, _, rest = head.partition(b"\r\n\r\n")
        first, *fields = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            self.tunnel(host, int(port), rest)
        else:
            self.forward(method, target, fields, rest)

    def tunnel(self, host, port, rest):
        note(host)
        out = socket.create_connection((host, port), 30)
        self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        client = self.request
        if CA:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate(host))
            client = context.wrap_socket(client, server_side=True)
            out = ssl.create_default_context().wrap_socket(out, server_hostname=host)
        elif rest:
            out.sendall(rest)
        relay(client, out)

    def forward(self, method, target, fields, rest):
        url = urlsplit(target)
        note(url.hostname)
        path = (url.path or "/") + ("?" + url.query if url.query else "")
        kept = [field for field in fields if not field.lower().startswith(("proxy-", "connection:"))]
        out = socket.create_connection((url.hostname, url.port or 80), 30)
        out.sendall("\r\n".join([f"{method} {path} HTTP/1.1", *kept, "Connection: close", "", ""]).encode("latin-1") + rest)
        relay(self.request, out)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, request, client_address):
        print(client_address, sys.exc_info()[1], file=sys.stderr, flush=True)


Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
