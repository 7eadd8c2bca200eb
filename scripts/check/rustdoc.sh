#!/bin/sh
# For RUSTDOC: rustdoc with unstable features, as published documentation has it. Only rustdoc, or Cargo would build every
# dependency again.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
