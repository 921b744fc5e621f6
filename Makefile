# Every target is a subcommand of xtask, where its logic is.

XTASK = cargo run --quiet --locked --package xtask --

help: ## This list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

up: ## From a fresh machine to a running Slipway with a tenant; repairs what runs already (root)
	@$(XTASK) up

down: ## Remove everything that `make up` made, but the build cache and Debian packages (root)
	@$(XTASK) down

status: ## Say what of the local stack runs
	@$(XTASK) status

deploy: ## Install Slipway into the cluster that KUBECONFIG names; OVERLAY=DIR: from a kustomization on top of deploy/
	@$(XTASK) deploy $(if $(OVERLAY),--overlay "$(abspath $(OVERLAY))")

test: ## Everything that CI runs (root)
	@$(XTASK) test

images: ## Build the images of the local stack (root)
	@$(XTASK) images

gen: ## Write what is made from the types: CRDs and reference pages
	@$(XTASK) gen

check: ## The layer rule: which crate may use which
	@$(XTASK) check

.PHONY: help up down status deploy test images gen check
