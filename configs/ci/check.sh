#!/bin/sh
# Runs an experiment and compares the run with a committed baseline: for any CI system.
#
#   check.sh EXPERIMENT BASELINE [FOLDER]
#
# FOLDER (lacuna-out) gets run/ (the record with report.html and junit.xml), compare.html,
# compare.md, compare-junit.xml, and baseline.jsonl: this run as a baseline, to commit when the
# change is meant. LACUNA_ALLOW names the differences that are meant (`lacuna compare --help`):
# prompts, for a project that changes its prompts; model, for one that changes its model.
#
# Exit code, as lacuna's: the first that applies of 2 usage, 1 error, 100 regressed or a gate
# failed, 3 cannot decide (no baseline yet, another plan, too few repeats), 0.
set -u

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    echo "usage: check.sh EXPERIMENT BASELINE [FOLDER]" >&2
    exit 2
fi
experiment=$1 baseline=$2 folder=${3:-lacuna-out}

mkdir -p "$folder" || exit 1
lacuna run "$experiment" -o "$folder/run"
ran=$?
case $ran in 0 | 3 | 100) ;; *) exit $ran ;; esac
lacuna baseline "$folder/run" -o "$folder/baseline.jsonl" || exit 1

if [ ! -e "$baseline" ]; then
    echo "check: there is no $baseline yet; if this run is good, commit $folder/baseline.jsonl as it"
    compared=3
else
    lacuna compare "$baseline" "$folder/run" -o "$folder" \
        ${LACUNA_ALLOW:+--allow "$LACUNA_ALLOW"}
    compared=$?
fi

for code in 2 1 100 3; do
    if [ $ran -eq $code ] || [ $compared -eq $code ]; then exit $code; fi
done
exit 0
