# The AWS CLI: aws s3 and aws s3api. Arguments: ENDPOINT AWS
set -eux
endpoint=$1
aws() { "$aws" --endpoint-url "$endpoint" "$@"; }
aws=$2

printf '[default]\ns3 =\n  signature_version = s3v4\n' >config
export AWS_CONFIG_FILE="$PWD/config"
head -c 30000000 /dev/urandom >large
printf 'hello' >small
aws s3 cp --quiet large "s3://lake/cli/large file"
aws s3 cp --quiet "s3://lake/cli/large file" back
cmp large back
aws s3 cp --quiet small s3://lake/cli/small --content-type text/x
aws s3 ls s3://lake/cli/ | grep -q ' 5 small$'
aws s3 cp --quiet s3://lake/cli/small s3://lake/cli/copied
[ "$(aws s3 cp --quiet s3://lake/cli/copied -)" = hello ]
mkdir tree && for n in 1 2 3; do echo $n >tree/$n; done
# Stores tell times in whole seconds: files of this second would look newer than their objects.
touch -d '1 minute ago' tree/*
aws s3 sync --quiet tree s3://lake/cli/tree
[ "$(aws s3 sync tree s3://lake/cli/tree)" = "" ]
aws s3 sync --quiet s3://lake/cli/tree tree-back
diff -r tree tree-back
url=$(aws s3 presign s3://lake/cli/small)
[ "$(python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' "$url")" = hello ]
[ "$(aws s3api head-object --bucket lake --key cli/copied --query ContentType --output text)" = text/x ]
aws s3 rm --quiet --recursive s3://lake/cli/
[ "$(aws s3 ls s3://lake/)" = "" ]
