# SPDX-License-Identifier: Apache-2.0
"""Objects of stores and of HTTP servers: addresses, requests, blocks and whole copies on disk.

Readers and operators use this folder. It talks to stores by the package obstore (the extra `remote`). Credentials come
from the environment or the machine, as the providers' own tools take them. Addresses with credentials in them are
refused, so that no message, token or report can have any.
"""
