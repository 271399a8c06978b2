#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write PNG, TIFF, BMP and PNM files, of every kind, for the fuzzer of ``raster``: make_raster_corpus.py FOLDER."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from png_writer import KINDS, chunk, palette, png, samples
from tiff_writer import DEFLATE, LZW, NONE, PACK_BITS, grain, tiff


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    exif = chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\3\0\0\0\1" + struct.pack(">HHI", 6, 0, 0))
    for colours, bits in KINDS:
        before = palette(1 << bits, (1 << bits) // 2) if colours == 3 else b""
        for interlaced in (False, True):
            for height, width, level in ((1, 1, 9), (9, 13, 6), (21, 33, 1), (17, 19, 0)):
                pixels = samples(colours, bits, height, width)
                data = png(pixels, colours, bits, interlaced=interlaced, before=before, after=exif, level=level)
                (folder / f"{colours}-{bits}-{height}x{width}-{int(interlaced)}.png").write_bytes(data)
    for photometric, channels, extra in ((1, 1, ()), (1, 2, (2,)), (2, 3, ()), (2, 4, (2,)), (2, 4, (0,))):
        for compression in (NONE, LZW, DEFLATE, PACK_BITS):
            for big in (False, True):
                data = tiff(
                    grain(21, 33, channels, "u2" if big and channels != 2 else "u1"), photometric, big=big, rows=6,
                    compression=compression, predictor=2 if compression in (LZW, DEFLATE) else 1, extra=extra,
                    tags={274: (3, [6])},
                )  # fmt: skip
                (folder / f"{photometric}-{channels}-{len(extra)}-{compression}-{int(big)}.tif").write_bytes(data)
    header = struct.pack("<IiiHHIIiiII", 40, 5, 4, 1, 24, 0, 64, 0, 0, 0, 0)
    (folder / "24.bmp").write_bytes(b"BM" + struct.pack("<IHHI", 118, 0, 0, 54) + header + bytes(range(64)))
    header = struct.pack("<IiiHHIIiiII", 40, 5, -2, 1, 8, 0, 16, 0, 0, 0, 0)
    body = header + bytes(range(256)) * 4 + bytes(16)
    (folder / "8.bmp").write_bytes(b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, 1078) + body)
    (folder / "16.pgm").write_bytes(b"P5 #c\n4 3 65535\n" + bytes(24))
    (folder / "8.ppm").write_bytes(b"P6 4 3 255\n" + bytes(36))


if __name__ == "__main__":
    main()
