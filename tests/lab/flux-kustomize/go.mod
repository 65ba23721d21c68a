module kedge.dev/lab/flux-kustomize

go 1.25.0

require (
	github.com/fluxcd/kustomize-controller v1.7.3
	github.com/fluxcd/kustomize-controller/api v1.7.3
)

// As its own go.mod says.
replace (
	github.com/opencontainers/go-digest => github.com/opencontainers/go-digest v1.0.1-0.20220411205349-bde1400a84be
	gopkg.in/yaml.v3 => gopkg.in/yaml.v3 v3.0.1
	sigs.k8s.io/kustomize/api => sigs.k8s.io/kustomize/api v0.20.1
	sigs.k8s.io/kustomize/kyaml => sigs.k8s.io/kustomize/kyaml v0.20.1
)
