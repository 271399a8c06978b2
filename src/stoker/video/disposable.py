# SPDX-License-Identifier: Apache-2.0
"""Pictures that no other picture is predicted from, by the headers of their packets: only their own frame needs them.

Sources: H.264, ITU-T H.264 7.4.1 (`nal_ref_idc`) and ISO/IEC 14496-15 5.3.3 (avcC); HEVC, ITU-T H.265 7.4.2.2
(sub-layer non-reference pictures) and ISO/IEC 14496-15 8.3.3 (hvcC).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .frame_index import FrameIndex

_CONFIGURED = 1  # first byte of avcC and hvcC: NAL units have lengths instead of start codes
_HVCC_BYTES = 23
_NONE, _H264, _HEVC = 0, 1, 2


class DisposableRule(NamedTuple):
    """Rule by which the headers of a packet say that no other picture is predicted from its picture.

    Attributes:
        codec: 1: H.264, 2: HEVC, 0: there is no rule.
        length: bytes of the lengths before the units of a packet; 0: units have start codes.
        layers: highest temporal layer of HEVC.
    """

    codec: int = _NONE
    length: int = 0
    layers: int = 0

    def __call__(self, packet: bytes) -> bool:
        """Return whether a packet is known to hold such a picture."""
        if self.codec == _NONE:
            return False
        return _is_disposable(packet, self.length, _h264_unit if self.codec == _H264 else _hevc_unit(self.layers))


def disposable_of(index: FrameIndex) -> DisposableRule:
    """Return the rule of a video's codec and container."""
    extra = index.extradata
    is_configured = len(extra) > 6 and extra[0] == _CONFIGURED
    if index.codec_name == "h264":
        return DisposableRule(_H264, (extra[4] & 3) + 1 if is_configured else 0)
    if index.codec_name == "hevc" and is_configured and len(extra) >= _HVCC_BYTES and extra[21] >> 3 & 7:
        return DisposableRule(_HEVC, (extra[21] & 3) + 1, extra[21] >> 3 & 7)
    return DisposableRule()


def _is_disposable(packet: bytes, length: int, unit: Callable[[bytes], bool | None]) -> bool:
    """Return whether all slices of a packet are of such pictures. ``unit``: whether one is; None: it is no slice."""
    slices = [kind for kind in map(unit, _units(packet, length)) if kind is not None]
    return bool(slices) and all(slices)


def _units(packet: bytes, length: int) -> Iterator[bytes]:
    """Return the headers of the NAL units of a packet. ``length``: bytes of their lengths; 0: start codes."""
    at = 0
    while at < len(packet):
        if length:
            begin = at + length
            at = begin + int.from_bytes(packet[at:begin], "big")
        else:
            begin = packet.find(b"\0\0\1", at) + 3
            if begin < 3:
                return
            at = begin
        yield packet[begin : begin + 2]


def _h264_unit(header: bytes) -> bool | None:
    if len(header) < 2:
        return False
    kind, is_reference = header[0] & 31, bool(header[0] & 0x60)
    if 1 <= kind <= 5:
        return not is_reference
    return False if kind in (14, 20, 21) else None  # of other layers and views


def _hevc_unit(layers: int) -> Callable[[bytes], bool | None]:
    def unit(header: bytes) -> bool | None:
        if len(header) < 2 or header[0] & 1 or header[1] & 0xF8:
            return False  # of another layer
        kind, temporal = header[0] >> 1 & 63, header[1] & 7
        if kind > 31:
            return None
        return kind < 16 and kind % 2 == 0 and temporal == layers  # pictures of higher sub-layers may need it

    return unit
