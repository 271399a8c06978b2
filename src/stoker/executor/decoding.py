# SPDX-License-Identifier: Apache-2.0
"""Counts of decoded rows by device, for decoders that share rows between a GPU and the CPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Decoding:
    """Counts of decoded rows by device, for decoders with the same bits on GPU and CPU.

    Attributes:
        rows_on_gpu, rows_on_cpu: rows decoded so far.
        reasons: reasons why rows were left to the CPU, with the count of each.
        cpu_share: the CPU's current share of the rows, in addition to rows that only the CPU can decode.
        why: explanation of the share.
    """

    rows_on_gpu: int
    rows_on_cpu: int
    reasons: Mapping[str, int]
    cpu_share: float
    why: str

    def __str__(self) -> str:
        return self.line(())

    def line(self, sections: Iterable[str]) -> str:
        """Return the line of the report, with the codecs' sections appended."""
        part = self.rows_on_gpu / max(1, self.rows_on_gpu + self.rows_on_cpu)
        text = f"decoded on the GPU: {self.rows_on_gpu} rows ({part:.1%}), on the CPU: {self.rows_on_cpu}"
        text += "".join(f"; {section}" for section in sections)
        why = ", ".join(f"{rows} {reason}" for reason, rows in sorted(self.reasons.items(), key=lambda r: -r[1]))
        return f"{text}{f' ({why})' if why else ''}; the CPU takes {self.cpu_share:.0%} now: {self.why}"
