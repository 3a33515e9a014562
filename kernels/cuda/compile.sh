#!/bin/sh
# Compiles a file of kernels by the command given and keeps what ptxas says of them beside the object
# file, as OBJECT.ptxas. It is shown when the compilation fails.
previous=
object=
for word in "$@"; do
    [ "$previous" = -o ] && object=$word
    previous=$word
done
if "$@" 2>"$object.ptxas"; then
    exit 0
else
    status=$?
    cat "$object.ptxas" >&2
    exit $status
fi
