"""Signs claims (JSON on stdin) with the key of the tenant's Dex (its database: first argument), as Dex itself would."""

import base64
import hashlib
import json
import sqlite3
import sys


def encode(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def number(key, name):
    text = key[name]
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


def main():
    database = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
    key = json.loads(database.execute("select signing_key from keys").fetchone()[0])
    header = json.dumps({"alg": "RS256", "kid": key["kid"]}).encode()
    signed = encode(header) + b"." + encode(json.dumps(json.load(sys.stdin)).encode())
    # RSASSA-PKCS1-v1_5 of RFC 8017, section 8.2.1: padding, the name of SHA-256 in DER, the digest.
    digest = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(signed).digest()
    modulus = number(key, "n")
    size = (modulus.bit_length() + 7) // 8
    padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
    signature = pow(int.from_bytes(padded, "big"), number(key, "d"), modulus).to_bytes(size, "big")
    print((signed + b"." + encode(signature)).decode())


main()
