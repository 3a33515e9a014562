#!/bin/sh
# The table kernels/cuda/registers.md from what ptxas said.
#   registers.sh write TABLE VERSION LOG...   makes the table
#   registers.sh check TABLE KEPT             fails when a kernel spills, or KEPT is out of date
set -eu

write() {
    table=$1 version=$2
    shift 2
    {
        echo "# What the kernels take"
        echo
        echo "As nvcc $version builds them, for sm_80 / sm_90: registers of a thread, bytes that it spills"
        echo "(stores + loads; a test wants none) and bytes of static shared memory of a block. Written by"
        echo "the build; \`cmake --build build/release --target registers\` brings it up to date."
        echo
        echo "| kernel | registers | spilled | shared |"
        echo "|---|---|---|---|"
        cat "$@" | c++filt | awk '
            function number(pattern) { return match($0, pattern) ? substr($0, RSTART) + 0 : 0 }
            /Compiling entry function/ {
                split($0, quoted, "\047")
                kernel = quoted[2]
                arch = quoted[4]
                sub(/^void /, "", kernel)
                gsub(/\([a-z_]+\)/, "", kernel) # casts of template arguments
                sub(/\(.*/, "", kernel)
                bytes = 0
            }
            /bytes spill stores/ { # of the kernel, then of functions that it calls
                bytes += number("[0-9]+ bytes spill stores") + number("[0-9]+ bytes spill loads")
            }
            /Used [0-9]+ registers/ {
                if ((kernel, arch) in registers) {
                    print "two kernels are named " kernel >"/dev/stderr"
                    exit 1
                }
                registers[kernel, arch] = number("[0-9]+ registers")
                shared[kernel, arch] = number("[0-9]+ bytes smem")
                spilled[kernel, arch] = bytes
                kernels[kernel] = 1
            }
            function both(of, k) { return of[k, "sm_80"] " / " of[k, "sm_90"] }
            END {
                for (k in kernels)
                    printf "| `%s` | %s | %s | %s |\n", k, both(registers, k), both(spilled, k),
                           both(shared, k)
            }' | LC_ALL=C sort
    } >"$table"
}

check() {
    table=$1 kept=$2 status=0
    spills=$(awk -F'|' '/^\| `/ && $4 != " 0 / 0 "' "$table")
    if [ -n "$spills" ]; then
        printf 'these kernels spill registers:\n%s\n' "$spills"
        status=1
    fi
    if [ "$(grep '^As nvcc' "$table")" != "$(grep '^As nvcc' "$kept")" ]; then
        echo "another nvcc than that of $kept: not compared"
    elif ! diff -u "$kept" "$table"; then
        echo "$kept is out of date: cmake --build build/release --target registers"
        status=1
    fi
    exit $status
}

action=$1
shift
"$action" "$@"
