import { setTimeout as sleep } from 'node:timers/promises';
import {
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { type Log, throttledWarning } from './log.ts';
import type { Span, SpanOptions, Tracing } from './tracing.ts';

/**
 * Opens tracing by OpenTelemetry: spans go to a collector by OTLP over HTTP, in protobuf. Loaded only where they are
 * wanted. What can't be sent is dropped, with a warning.
 */
export function openTracing({ endpoint, version, now, log }: TracingOptions): Tracing {
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'headless-form-service', 'service.version': version }))
      .merge(detectResources({ detectors: [envDetector] })),
    // Traces that begin here are recorded, others if the caller's are.
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [new BatchSpanProcessor({ exporter: warning(endpoint, now, log), ...BATCHES })],
  });
  const tracer = provider.getTracer('headless-form-service', version);
  return {
    startSpan(
      name,
      { kind = 'internal', parent, links = [], attributes = {}, startedAt }: SpanOptions = {},
    ): Span {
      const parentContext = spanContextOf(parent);
      const context =
        parentContext === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parentContext);
      const options = {
        kind: kinds[kind],
        attributes,
        links: links.slice(0, MAX_LINKS).flatMap((link) => {
          const linked = spanContextOf(link);
          return linked === undefined ? [] : { context: linked };
        }),
        ...(startedAt !== undefined && { startTime: startedAt }),
      };
      const span = tracer.startSpan(name, options, context);
      return {
        traceparent: span.isRecording() ? traceparentOf(span.spanContext()) : undefined,
        setName: (text) => void span.updateName(text),
        setAttributes: (more) => void span.setAttributes(more),
        addEvent: (text, more) => void span.addEvent(text, more),
        fail: (reason) => void span.setStatus({ code: SpanStatusCode.ERROR, message: reason }),
        end: () => span.end(),
      };
    },
    async close() {
      const late = sleep(CLOSE_MS, undefined, { ref: false });
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
    },
  };
}

/** Sends spans, and logs when that fails. */
function warning(endpoint: string, now: () => number, log: Log): SpanExporter {
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces` });
  const warn = throttledWarning(log, now, WARN_EVERY_MS);
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.error !== undefined) {
          const { message } = result.error;
          warn(
            { reason: message, spans: spans.length },
            'Traces could not be sent to the collector; they are dropped.',
          );
        }
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}

/** As of W3C's Trace Context, version 00. */
function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

function spanContextOf(text: string | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  const traceFlags = Number.parseInt(flags ?? '', 16) & TraceFlags.SAMPLED;
  const context = { traceId, spanId, traceFlags, isRemote: true };
  return trace.isSpanContextValid(context) ? context : undefined;
}

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

/** The SDK's own limit. */
const MAX_LINKS = 128;

/** What is recorded beyond the queue, while the collector is slow or away, is dropped. */
const BATCHES = { maxQueueSize: 8_192, maxExportBatchSize: 1_024, scheduledDelayMillis: 1_000 };

const CLOSE_MS = 5_000;
const WARN_EVERY_MS = 60_000;

export type TracingOptions = {
  /** The base URL of the collector, without a slash at the end. */
  endpoint: string;
  version: string;
  /** Milliseconds since 1970. */
  now: () => number;
  log: Log;
};
