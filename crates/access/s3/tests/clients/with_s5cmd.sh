# s5cmd. Arguments: ENDPOINT S5CMD
set -eu
endpoint=$1
s5cmd() { "$s5cmd" --endpoint-url "$endpoint" "$@"; }
s5cmd=$2

mkdir tree
for n in $(seq 40); do echo "file $n" >"tree/file $n"; done
head -c 60000000 /dev/urandom >tree/large
s5cmd ls | grep -q 's3://lake'
s5cmd cp 'tree/*' s3://lake/s5/ >/dev/null
[ "$(s5cmd ls 's3://lake/s5/*' | wc -l)" = 41 ]
s5cmd cp 's3://lake/s5/*' back/ >/dev/null
diff -r tree back
s5cmd cat 's3://lake/s5/file 7' | grep -q '^file 7$'
s5cmd mv 's3://lake/s5/file 7' s3://lake/s5/moved >/dev/null
s5cmd du 's3://lake/s5/*' | grep -q 'in 41 objects'
s5cmd rm 's3://lake/s5/*' >/dev/null
if s5cmd ls 's3://lake/s5/*' 2>/dev/null; then echo 'something is left' >&2; exit 1; fi
