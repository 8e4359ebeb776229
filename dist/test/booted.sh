# What is done below a systemd of one's own, with bash: each unit is started, asked and stopped.

as_forebay() {
    setpriv --reuid forebay --regid forebay --clear-groups env FOREBAY_CONFIG=/etc/forebay/forebay.toml FOREBAY_DISTRIBUTE_FROM=0B forebay "$@"
}

# What an address of this machine answers to a GET; tried until it listens and is ready.
get() { # PORT PATH
    local answer
    for _ in $(seq 200); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then
            exec 3<>"/dev/tcp/127.0.0.1/$1"
            printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$2" >&3
            answer=$(timeout 10 cat <&3)
            case $answer in
            "HTTP/1.0 503 "* | "HTTP/1.1 503 "*) ;;
            *)
                printf '%s\n' "$answer"
                return
                ;;
            esac
        fi
        sleep 0.1
    done
    journalctl --no-pager -n 50 -u 'forebay*'
    return 1
}

# It ended as it was asked to, and nothing had to start it again.
stopped() { # UNIT..
    local unit
    systemctl stop "$@"
    for unit in "$@"; do
        [ "$(systemctl show -p Result -p ExecMainStatus -p NRestarts "$unit" | sort | paste -sd' ')" = \
            "ExecMainStatus=0 NRestarts=0 Result=success" ] || { systemctl status "$unit"; journalctl --no-pager -u "$unit"; return 1; }
    done
}

[ -z "$(systemctl list-units --no-legend 'forebay*')" ]
mkdir -p /srv/lake
printf 'region,amount\nnorth,3\nsouth,4\nnorth,5\n' >/srv/lake/sales.csv
printf 'dram = "64MiB"\ndisk = "128MiB"\nshard-bytes = "64MiB"\n' >>/etc/forebay/forebay.toml
query="select region, sum(amount) as total from '/lake/sales.csv' group by region order by region"
answer=$(printf 'region,total\nnorth,8\nsouth,4')

systemctl start forebay
get 7480 /readyz | grep -x ready
as_forebay mount add lake file:///srv/lake --read-only
[ "$(as_forebay sql --csv "$query")" = "$answer" ]
# Homes are closed to the unit.
if as_forebay mount add home file:///root; then exit 1; fi
stopped forebay

# The roles of a cluster, on one machine: they find the coordinator's secret by themselves.
echo FOREBAY_HTTP=127.0.0.1:7484 >/etc/forebay/coordinator.env
echo FOREBAY_S3_ANONYMOUS=read >/etc/forebay/gateway.env
systemctl start forebay-executor forebay-gateway forebay-scheduler forebay-worker forebay-coordinator
for port in 7480 7481 7482 7483 7484; do
    get "$port" /readyz | grep -x ready
done
[ "$(as_forebay sql --csv "$query")" = "$answer" ]
as_forebay jobs | grep -q 'select region'
get 7490 /lake/sales.csv | tail -n 3 | grep -x 'south,4'

# One that is killed comes back.
systemctl kill --signal=KILL forebay-worker
sleep 4
get 7480 /readyz | grep -x ready
[ "$(systemctl show -p NRestarts --value forebay-worker)" = 1 ]
[ "$(as_forebay sql --csv "$query")" = "$answer" ]
systemctl stop forebay-worker
stopped forebay-gateway forebay-executor forebay-scheduler forebay-coordinator

dpkg --remove forebay
[ -z "$(systemctl list-unit-files --no-legend 'forebay*')" ]
echo all of it
