#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write image files for the fuzzer of ``raster``: make_raster_corpus.py FOLDER [LIBRARIES].

FOLDER: PNG, TIFF, GIF, BMP and PNM files of every kind. LIBRARIES: a folder for WebP and JPEG 2000 files, if Pillow
writes them; the standard output has the libraries that read them, as assignments of a shell.
"""

from __future__ import annotations

import itertools
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from gif_writer import extension, gif
from png_writer import KINDS, chunk, palette, png, samples
from tiff_writer import DEFLATE, LZW, NONE, PACK_BITS, grain, tiff

_LIBRARIES = {"WEBP": "libwebp-", "JPEG2000": "libopenjp2-"}  # in a wheel of Pillow


def write_files_of_libraries(folder: Path) -> None:
    """Write files by Pillow, and print the paths of its libraries."""
    try:
        import PIL
        from PIL import Image, features
    except ImportError:
        return
    bundled = Path(PIL.__file__).parents[1] / "pillow.libs"
    found = {kind: sorted(bundled.glob(f"{stem}*.so*")) for kind, stem in _LIBRARIES.items()}
    if not all(found.values()) or not features.check("webp") or not features.check("jpg_2000"):
        return
    folder.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[0x0112] = 6
    for (height, width), mode in itertools.product([(1, 1), (9, 13), (37, 53), (80, 70)], ["L", "LA", "RGB", "RGBA"]):
        channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}[mode]
        pixels = grain(height, width, channels)
        image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
        for k, options in enumerate(({"quality": 60}, {"lossless": True}, {"exif": exif, "alpha_quality": 10})):
            if channels > 2:
                image.save(folder / f"{mode}-{height}-{k}.webp", **options)
        lossy = {"irreversible": True, "quality_mode": "rates", "quality_layers": [8]}
        for k, options in enumerate(({}, lossy, {"no_jp2": True}, {"tile_size": (16, 16), "num_resolutions": 2})):
            image.save(folder / f"{mode}-{height}-{k}.jp2", **options)
    Image.fromarray(grain(37, 53, 1, "u2")[..., 0]).save(folder / "16.jp2")
    for kind, paths in found.items():
        print(f"STOKER_FUZZ_{kind}='{paths[0]}'; export STOKER_FUZZ_{kind}")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 2:
        write_files_of_libraries(Path(sys.argv[2]))
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
    for where in ({"tile": (16, 16)}, {"planes": True, "rows": 6}, {"planes": True, "tile": (16, 32)}):
        for compression in (NONE, LZW, DEFLATE, PACK_BITS):
            data = tiff(grain(21, 33, 3, "u2"), 2, compression=compression, **where)
            (folder / f"{'-'.join(where)}-{compression}.tif").write_bytes(data)
    colours, options = bytes(range(256)) * 3, {"screen": (30, 40), "at": (3, 5), "transparent": 4}
    for bits in range(2, 9):
        for interlaced in (False, True):
            numbers = grain(21, 33, 1)[..., 0] & ((1 << bits) - 1)
            data = gif(numbers, colours[: 3 << bits], bits=bits, interlaced=interlaced, before=extension(0xFE, b"c"))
            (folder / f"{bits}-{int(interlaced)}.gif").write_bytes(data)
    numbers = grain(90, 80, 1)[..., 0] % 4
    (folder / "full.gif").write_bytes(gif(numbers, colours[:12], local=colours[9:21], bits=2, clears=False, **options))
    header = struct.pack("<IiiHHIIiiII", 40, 5, 4, 1, 24, 0, 64, 0, 0, 0, 0)
    (folder / "24.bmp").write_bytes(b"BM" + struct.pack("<IHHI", 118, 0, 0, 54) + header + bytes(range(64)))
    header = struct.pack("<IiiHHIIiiII", 40, 5, -2, 1, 8, 0, 16, 0, 0, 0, 0)
    body = header + bytes(range(256)) * 4 + bytes(16)
    (folder / "8.bmp").write_bytes(b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, 1078) + body)
    (folder / "16.pgm").write_bytes(b"P5 #c\n4 3 65535\n" + bytes(24))
    (folder / "8.ppm").write_bytes(b"P6 4 3 255\n" + bytes(36))
    (folder / "12.ppm").write_bytes(b"P6 4 3 4095\n" + bytes(range(72)))
    (folder / "7.pgm").write_bytes(b"P5 4 3 7\n" + bytes(range(12)))


if __name__ == "__main__":
    main()
