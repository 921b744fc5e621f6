# Login shells: sshd's PATH again, which /etc/profile replaces; completion of `ssh` from the aliases alone.
export PATH=/opt/sip/bin:/usr/local/bin:/usr/bin:/bin
export COMP_KNOWN_HOSTS_WITH_HOSTFILE=
