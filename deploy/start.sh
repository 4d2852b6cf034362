#!/bin/sh
# Starts the service: compile into the volume NUMBA_CACHE_DIR, which takes a minute or two the first time and
# a second after that, then serve. Arguments are those of `neardup serve` after the index.
# NEARDUP_INDEX is its folder; NEARDUP_HOST the address, all unless set, so NEARDUP_KEY or --keys must be given.
set -eu
neardup compile
exec neardup serve "$NEARDUP_INDEX" --host "${NEARDUP_HOST:-0.0.0.0}" "$@"
