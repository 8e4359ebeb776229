# rclone. Arguments: ENDPOINT RCLONE
set -eu
rclone() { "$rclone" --config /dev/null --s3-provider Other --s3-env-auth --s3-endpoint "$endpoint" --s3-upload-cutoff 8M --s3-chunk-size 5M "$@"; }
endpoint=$1
rclone=$2

mkdir tree
for n in $(seq 20); do echo "file $n" >"tree/file $n"; done
head -c 20000000 /dev/urandom >tree/large
rclone copy tree :s3:lake/rc/tree
rclone check tree :s3:lake/rc/tree 2>/dev/null
rclone copy :s3:lake/rc/tree back
diff -r tree back
echo more >>'tree/file 3' && rm 'tree/file 4'
rclone sync tree :s3:lake/rc/tree
rclone check tree :s3:lake/rc/tree 2>/dev/null
[ "$(rclone cat ':s3:lake/rc/tree/file 3' | tail -1)" = more ]
[ "$(rclone lsf :s3:lake/rc/tree | wc -l)" = 20 ]
rclone moveto ':s3:lake/rc/tree/file 1' ':s3:lake/rc/moved'
[ "$(rclone cat :s3:lake/rc/moved)" = 'file 1' ]
rclone purge :s3:lake/rc
[ "$(rclone lsf :s3:lake)" = "" ]
