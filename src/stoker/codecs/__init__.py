# SPDX-License-Identifier: Apache-2.0
"""Codecs: one folder for each kind of encoded bytes, with the protocol in ``contract.codec``."""
