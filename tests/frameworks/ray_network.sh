#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run a command in a network of its own, which has one address besides 127.0.0.1: Ray listens on the machine's address.
exec unshare --map-root-user --net sh -ec '
  ip link set lo up
  ip address add 10.77.0.1/24 dev lo
  ip route add default dev lo src 10.77.0.1
  exec "$@"' sh "$@"
