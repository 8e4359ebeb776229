#!/bin/sh
# Boots this machine's systemd in a container over this machine's files, with the deb installed, and starts its units: boot.sh DEB FOLDER.
# Nothing of it is left when it ends. FOLDER has booted.sh, which runs in it, and then what that said: log, and code for how it ended.
set -eu

deb=$1 folder=$2
place=$(mktemp -d)
mount -t tmpfs none "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$place/root"
root=$place/root
# What this machine starts is not part of it.
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/systemd/system/*.service.d
cp "$deb" "$root/mnt/forebay.deb"
chroot "$root" dpkg -i /mnt/forebay.deb >/dev/null
mkdir -p "$root/etc/systemd/system/multi-user.target.wants" "$root/opt/told"
cat >"$root/etc/systemd/system/told.service" <<UNIT
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'bash -ex /opt/told/booted.sh >/opt/told/log 2>&1; echo \$\$? >/opt/told/code'
ExecStopPost=/bin/systemctl --no-block poweroff
UNIT
ln -s ../told.service "$root/etc/systemd/system/multi-user.target.wants/told.service"
ln -sf /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
exec timeout 180 systemd-nspawn --quiet --register=no --keep-unit --private-network --link-journal=no --directory "$root" \
    --bind "$folder:/opt/told" --boot </dev/null
