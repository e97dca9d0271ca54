#!/usr/bin/env bash
# A run shared by the tasks of a Slurm array. The words behind the file's name are those of `hardlook run`:
#
#   sbatch --array=1-8 deploy/slurm-array.sh closed-miou --data voc=/shared/VOC2012 --model my_package.models:Net --out /shared/runs/net
#
# Submit it from an active environment that all nodes see. Submit it again, with an array of any size, to resume the run.
#SBATCH --job-name=hardlook
#SBATCH --array=1-8
#SBATCH --cpus-per-task=1
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --output=hardlook-%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
# For a GPU per task, add a line `#SBATCH --gres=gpu:1` here and `--device cuda` to the words above.
set -euo pipefail

if [ "$#" -eq 0 ]; then
  echo "usage: sbatch --array=1-8 $0 BENCHMARK [OPTIONS of hardlook run] --out FOLDER" >&2
  exit 2
fi
: "${SLURM_ARRAY_TASK_ID:?is not set: submit this file with sbatch --array=1-N}"
tasks=$((SLURM_ARRAY_TASK_MAX - SLURM_ARRAY_TASK_MIN + 1))
if [ "$tasks" -ne "$SLURM_ARRAY_TASK_COUNT" ]; then
  echo "the array must be one range without gaps, such as --array=1-8" >&2
  exit 2
fi
# exec: Slurm's signal, two minutes before the time is over, goes to hardlook, which writes its records and ends.
exec hardlook run "$@" --quiet --shard "$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN + 1))/$tasks"
