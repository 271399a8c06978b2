# SPDX-License-Identifier: Apache-2.0
"""For users' own operators, and for this project's tests: random graphs, references, laws."""
