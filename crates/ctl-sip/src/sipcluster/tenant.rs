//! The kubeconfig of the tenant: from the Cluster of Cluster API that the spec refers to, if it may be read.

use std::sync::Arc;

use api::keys;
use api_foreign::Cluster;
use base::Key;
use io_kube::{Cause, read};
use kube::ResourceExt;

use super::{Job, observe::secret};
use crate::{Context, Error};

/// The kubeconfig, and why it is refused, if it is.
pub(super) async fn kubeconfig(job: &Job, cx: &Context) -> Result<(Option<Arc<[u8]>>, Option<String>), Error> {
    if job.sip.spec.services.jump_host.is_empty() || job.plan.finished {
        return Ok((None, None));
    }
    let (own, cluster) = (&job.want.key, &job.want.tenant);
    if cluster.namespace != own.namespace
        && let Some(refused) = refusal(cluster, own, cx).await?
    {
        return Ok((None, Some(refused)));
    }
    let data = secret(cx, &secret_of(cluster)).await?;
    Ok((data.and_then(|mut data| data.remove("value")), None))
}

/// The Secret in which Cluster API keeps the kubeconfig of a Cluster, under key `value`.
pub fn secret_of(cluster: &Key) -> Key {
    Key::new(&cluster.namespace, format!("{}-kubeconfig", cluster.name))
}

/// A Cluster in another namespace is read only if it names this SIPCluster: else anybody could read anybody's.
async fn refusal(cluster: &Key, own: &Key, cx: &Context) -> Result<Option<String>, Error> {
    let found = read::get_as::<Cluster>(cx.writer.client(), Some(&cluster.namespace), &cluster.name).await;
    let annotation = match found {
        Ok(Some(found)) => found.annotations().get(keys::CLUSTER).cloned(),
        Ok(None) => None,
        Err(error) if matches!(error.cause, Cause::Forbidden(_)) => {
            return Ok(Some(format!("spec.clusterRef: Cluster {cluster} may not be read: {}", error.cause)));
        }
        Err(error) => return Err(Error::Api(error)),
    };
    let wanted = own.to_string();
    Ok((annotation.as_ref() != Some(&wanted)).then(|| {
        format!(
            "spec.clusterRef: Cluster {cluster} does not name this SIPCluster; its annotation {} has to be {wanted}",
            keys::CLUSTER
        )
    }))
}
