//! Takes the local stack away, from whatever state it is in.

use std::{fs, path::Path, time::Duration};

use anyhow::Result;

use crate::{
    before, cgroup,
    cluster::containerd,
    config::{LOCK, RUN, STATE},
    context::Cx,
    firewall, mounts, net, process,
};

/// Leaves no process, mount, interface, namespace, cgroup, rule or file of the stack.
pub fn down(cx: &Cx) -> Result<()> {
    let before = before::recall();
    cx.steps.run("processes", |step| {
        // kubelet first, or it would start again what is stopped; the rest in no order.
        for name in std::iter::once("kubelet".to_owned()).chain(process::recorded()) {
            step.note(format!("stopping {name}"));
            process::end_at_once(&name)?;
        }
        step.note("ending pods");
        let left = cgroup::clear(Duration::from_secs(30))?;
        Ok(format!("gone, {left} of them in pods"))
    })?;
    cx.steps.run("mounts", |step| mounts::clear(step).map(|count| format!("{count} removed")))?;
    cx.steps.run("network", |step| {
        let links = net::clear(step)?;
        let chains = match &before {
            Some(before) => firewall::close(step, &before.chains)?,
            None => 0,
        };
        Ok(format!("{links} interfaces and {chains} firewall chains removed"))
    })?;
    cx.steps.run("files", |step| {
        for dir in [RUN, STATE] {
            mounts::remove(dir)?;
        }
        containerd::forget_networks();
        if let Some(before) = &before {
            before.restore(step);
        }
        // Keys and a kubeconfig of a cluster that is gone only lead to errors nobody understands.
        mounts::remove(&cx.repo.join(".slipway").to_string_lossy())?;
        let _ = fs::remove_file(Path::new(LOCK));
        Ok("removed; packages and target/dev stay")
    })
}
