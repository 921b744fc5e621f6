//! Our CustomResourceDefinitions, one file per kind.
