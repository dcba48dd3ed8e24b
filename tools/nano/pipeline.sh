#!/bin/sh
# Makes both checkpoints in two pieces of under ten minutes on one large GPU; each piece leaves everything needed for the
# next in OUT.  Usage: pipeline.sh first|second OUT TOKENIZER_DIR
#   first   backbone and MTP on rows of 1,024 tokens (schedule 0 to 0.6), about 9.5 minutes
#   second  rows of 4,096 and 16,384 tokens (0.6 to 1), DSpark stages, goldens, evaluation, about 9.5 minutes
# OUT gets nano, nano-dspark, golden, log.  Copy OUT away after each piece.
set -u
PIECE=$1 OUT=$2 TOK=$3
HERE=$(dirname "$0")
LOG=$OUT/log
mkdir -p "$LOG" "$OUT/nano" "$OUT/golden"
cp -n "$TOK"/tokenizer.json "$TOK"/tokenizer_config.json "$OUT/nano/"
export PYTHONUNBUFFERED=1
T0=$(date +%s)

train() {
    python3 "$HERE/train.py" --out "$OUT/nano" --tokenizer "$TOK/tokenizer.json" --t0 "$T0" "$@" > "$LOG/train-$PIECE.txt" 2>&1
    echo "train $? after $(($(date +%s) - T0)) s"
}

if [ "$PIECE" = first ]; then
    train --begin 0 --end 0.6 --minutes 9
    exit 0
fi
train --begin 0.6 --end 1 --minutes 5.2 --resume "$OUT/nano"
python3 "$HERE/golden.py" "$OUT/nano" "$OUT/golden/nano" > "$LOG/golden.txt" 2>&1 &
timeout 200 python3 "$HERE/evaluate.py" "$OUT/nano" > "$LOG/evaluate.txt" 2>&1 &
python3 "$HERE/train_dspark.py" --backbone "$OUT/nano" --out "$OUT/nano-dspark" --minutes 2.2 > "$LOG/dspark.txt" 2>&1
echo "dspark $? after $(($(date +%s) - T0)) s"
timeout 60 python3 "$HERE/evaluate.py" "$OUT/nano-dspark" > "$LOG/evaluate-dspark.txt" 2>&1 &
timeout 60 python3 "$HERE/golden.py" "$OUT/nano-dspark" "$OUT/golden/nano-dspark" > "$LOG/golden-dspark.txt" 2>&1
wait
echo "all after $(($(date +%s) - T0)) s"
