{{/* What the chart's objects are called. */}}
{{- define "forebay.name" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{/* The labels that a role's pods are selected by: (list . "worker"). They never change. */}}
{{- define "forebay.selector" -}}
app.kubernetes.io/name: forebay
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "forebay.labels" -}}
{{ include "forebay.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Names of services with their namespace, so that clients of other namespaces are told them, too. */}}
{{- define "forebay.coordinator" -}}
{{ include "forebay.name" . }}-coordinator.{{ .Release.Namespace }}.svc:7400
{{- end }}
{{- define "forebay.scheduler" -}}
{{ include "forebay.name" . }}-scheduler.{{ .Release.Namespace }}.svc:7420
{{- end }}

{{- define "forebay.authSecret" -}}
{{ default (printf "%s-auth" (include "forebay.name" .)) .Values.auth.existingSecret }}
{{- end }}

{{- define "forebay.serviceAccount" -}}
{{ default (ternary (include "forebay.name" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{/* What all pods have in common: (list . "worker" .Values.worker). */}}
{{- define "forebay.pod" -}}
{{- $root := index . 0 }}{{ $values := index . 2 -}}
serviceAccountName: {{ include "forebay.serviceAccount" $root }}
automountServiceAccountToken: false
# Kubernetes would name services in variables FOREBAY_*, which Forebay takes for settings that it does not know.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  # Files of secrets are root's and this group's, which Forebay takes for private.
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* Annotations of pods; settings that change start them anew. */}}
{{- define "forebay.annotations" -}}
checksum/config: {{ toJson (index . 0).Values.config | sha256sum }}
{{- with (index . 2).podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "forebay.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* The variables of all processes: (list . .Values.worker). */}}
{{- define "forebay.env" -}}
{{- $root := index . 0 -}}
- name: FOREBAY_CONFIG
  value: /etc/forebay/forebay.toml
- name: FOREBAY_COORDINATOR
  value: {{ include "forebay.coordinator" $root }}
{{- if $root.Values.metrics.anonymous }}
- name: FOREBAY_METRICS_ANONYMOUS
  value: "true"
{{- end }}
{{- if $root.Values.tls.existingSecret }}
- name: FOREBAY_TLS_CERT
  value: /run/forebay/tls/tls.crt
- name: FOREBAY_TLS_KEY
  value: /run/forebay/tls/tls.key
- name: FOREBAY_TLS_CA
  value: /run/forebay/tls/ca.crt
{{- if $root.Values.tls.clientCertificates }}
- name: FOREBAY_TLS_CLIENT_CA
  value: /run/forebay/tls/ca.crt
{{- end }}
{{- end }}
{{- with (index . 1).env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What the cluster's processes know each other by. */}}
{{- define "forebay.clusterSecret" -}}
- name: FOREBAY_CLUSTER_SECRET
  valueFrom: { secretKeyRef: { name: {{ include "forebay.authSecret" . }}, key: cluster-secret } }
{{- end }}

{{/* Where a pod is, for what it says that others reach it at. */}}
{{- define "forebay.place" -}}
- name: POD_IP
  valueFrom: { fieldRef: { fieldPath: status.podIP } }
- name: HOST_IP
  valueFrom: { fieldRef: { fieldPath: status.hostIP } }
- name: NODE_NAME
  valueFrom: { fieldRef: { fieldPath: spec.nodeName } }
{{- end }}

{{- define "forebay.credentials" -}}
{{- with .Values.storage.credentialsSecrets }}
envFrom:
{{- range . }}
  - secretRef: { name: {{ . }} }
{{- end }}
{{- end }}
{{- end }}

{{/* How Kubernetes asks: whether a process runs, which it is restarted for, and whether it can serve, which it gets requests for: (list . "http"). It
shows no certificate, and needs none for these paths. */}}
{{- define "forebay.probes" -}}
{{- $port := index . 1 -}}
{{- $scheme := ternary "HTTPS" "HTTP" (not (empty (index . 0).Values.tls.existingSecret)) -}}
startupProbe:
  httpGet: { path: /healthz, port: {{ $port }}, scheme: {{ $scheme }} }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: {{ $port }}, scheme: {{ $scheme }} }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /readyz, port: {{ $port }}, scheme: {{ $scheme }} }
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{- define "forebay.mounts" -}}
- { name: config, mountPath: /etc/forebay, readOnly: true }
- { name: tmp, mountPath: /tmp }
{{- if .Values.tls.existingSecret }}
- { name: tls, mountPath: /run/forebay/tls, readOnly: true }
{{- end }}
{{- range .Values.storage.folders }}
- { name: {{ .name }}, mountPath: {{ .mountPath }}, readOnly: {{ default false .readOnly }} }
{{- end }}
{{- end }}

{{- define "forebay.volumes" -}}
- name: config
  configMap: { name: {{ include "forebay.name" . }} }
- name: tmp
  emptyDir: {}
{{- with .Values.tls.existingSecret }}
- name: tls
  secret: { secretName: {{ . }}, defaultMode: 0440 }
{{- end }}
{{- range .Values.storage.folders }}
- {{ toYaml (merge (dict "name" .name) .volume) | nindent 2 | trim }}
{{- end }}
{{- end }}
