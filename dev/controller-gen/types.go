// Package types keeps metal3's types, from which the CRD is written, among this module's requirements.
package types

import _ "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
