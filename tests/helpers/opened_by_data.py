"""Decode images, videos and audio, also files that refer to others, and print the files and programs that are opened."""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

from tests.helpers.encoded_images import LOSSLESS
from tests.helpers.unusual_images import UNUSUAL
from torchdali import fn

SECRET = "secret.png"
HOSTILE = {
    "EPS": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n(secret.png) (r) file\nshowpage\n%%EOF\n",
    "EPS with a preview": b"\xc5\xd0\xd3\xc6" + bytes(40) + b"%!PS",
    "SVG": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="secret.png" width="9" height="9"/></svg>',
    "XML with an entity": b'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg>&x;</svg>',
    "MVG": b"push graphic-context\nviewbox 0 0 9 9\nimage over 0,0 0,0 'https://127.0.0.1:9/|ls'\npop graphic-context\n",
    "WMF": b"\xd7\xcd\xc6\x9a\0\0" + bytes(60), "EMF": b"\1\0\0\0" + bytes(36) + b" EMF" + bytes(60), "PDF": b"%PDF-1.4\n1 0 obj\n",
    "MPEG": b"\0\0\1\xb3\2\0\3\x13", "HDF5": b"\x89HDF\r\n\x1a\n" + bytes(60), "FITS": b"SIMPLE  =                    T" + bytes(99),
    "list of images": b"secret.png\nsecret.png\n", "IPTC": b"\x1c\x01Z\0\1\0", "ffconcat": b"ffconcat version 1.0\nfile secret.png\n",
    "HLS": b"#EXTM3U\n#EXTINF:1,\nsecret.png\n#EXT-X-ENDLIST\n", "SDP": b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nm=video 45678 RTP/AVP 26\r\n",
}  # fmt: skip
EVENTS = ("open", "os.", "subprocess.", "socket.", "urllib.", "shutil.", "tempfile.", "pty.", "webbrowser.", "ftplib.", "http.")


def decode_all() -> None:
    images = [data for data, _ in (*LOSSLESS.values(), *UNUSUAL.values())]
    for data in (*images, *HOSTILE.values()):
        encoded = torch.from_numpy(np.frombuffer(bytes(data), np.uint8).copy())
        for operator in (fn.decoders.image, fn.decoders.video, fn.decoders.audio, fn.experimental.decoders.image, fn.peek_image_shape):
            try:
                operator(encoded)
            except (RuntimeError, ValueError):
                continue


def main() -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        import os

        os.chdir(folder)
        Path(SECRET).write_bytes(next(iter(LOSSLESS.values()))[0])
        decode_all()  # which imports all modules
        seen: set[str] = set()
        sys.addaudithook(lambda event, arguments: seen.add(f"{event} {arguments}"[:200]) if event.startswith(EVENTS) and watched else None)
        watched = [True]
        decode_all()
        watched.clear()
        os.chdir("/")
    print("\n".join(sorted(seen)))


if __name__ == "__main__":
    main()
