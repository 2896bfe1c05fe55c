//! Every knob of a run, in one place: the options set them, the generator reads them, each result row holds them all.

use crate::error::BenchError;
use crate::load::encode::{Encoder, Protocol};
use crate::load::keys::{Distribution, KeyFormat};
use crate::load::source::Mix;
use crate::load::values::{ValueKind, ValueSize, Values};
use crate::load::{LoadPlan, Pace};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Every knob of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Knobs {
    /// The language.
    pub protocol: Protocol,
    /// The processors of the server; empty for all.
    pub server_cores: Vec<usize>,
    /// The threads of the server.
    pub server_threads: usize,
    /// The memory limit of the server.
    pub maxmemory_bytes: Option<u64>,
    /// The processors of the client; empty for all.
    pub client_cores: Vec<usize>,
    /// The threads of the client.
    pub client_threads: usize,
    /// Connections over all client threads.
    pub connections: usize,
    /// Requests sent at once on each connection.
    pub pipeline: usize,
    /// Closed or open loop.
    pub pace: Pace,
    /// Keys, all of them written before the measured part.
    pub keys: u64,
    /// Bytes of each key.
    pub key_bytes: usize,
    /// Bytes of each value.
    pub value_size: ValueSize,
    /// The look of the values.
    pub value_kind: ValueKind,
    /// Reads in every `gets + sets` requests.
    pub gets: u64,
    /// Writes in every `gets + sets` requests.
    pub sets: u64,
    /// Keys in each request.
    pub keys_per_request: usize,
    /// Time to live of each key that is written.
    pub ttl_s: Option<u64>,
    /// How keys are drawn.
    pub distribution: Distribution,
    /// All draws follow from it.
    pub seed: u64,
    /// Load before the measured part.
    pub warmup_s: f64,
    /// The measured part.
    pub seconds: f64,
    /// The share of reads that must find their key.
    pub hit_rate: f64,
}

impl Default for Knobs {
    /// The common cell: 1 M keys of 15 B with values of 100 B, 10 reads to a write, 50 connections, one processor each.
    fn default() -> Self {
        Self {
            protocol: Protocol::Resp,
            server_cores: vec![0],
            server_threads: 1,
            maxmemory_bytes: None,
            client_cores: vec![1],
            client_threads: 1,
            connections: 50,
            pipeline: 16,
            pace: Pace::Closed,
            keys: 1_000_000,
            key_bytes: 15,
            value_size: ValueSize::fixed(100),
            value_kind: ValueKind::Random,
            gets: 10,
            sets: 1,
            keys_per_request: 1,
            ttl_s: None,
            distribution: Distribution::Uniform,
            seed: 1,
            warmup_s: 1.0,
            seconds: 5.0,
            hit_rate: 1.0,
        }
    }
}

impl Knobs {
    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// Says which knobs contradict each other.
    pub fn check(&self) -> Result<(), BenchError> {
        let refuse = |text: &str| Err(BenchError::Options(text.to_owned()));
        let counts = [
            self.connections,
            self.pipeline,
            self.keys_per_request,
            self.server_threads,
            self.client_threads,
        ];
        if self.keys == 0 || counts.contains(&0) {
            return refuse(
                "expected at least one key, connection, thread, request and key per request",
            );
        }
        if self.gets + self.sets == 0 {
            return refuse("expected a ratio with at least one read or write");
        }
        if self.protocol == Protocol::Memcached && self.keys_per_request > 1 && self.sets > 0 {
            return refuse(
                "memcached has no command that writes several keys: use --ratio 1:0 with --multi",
            );
        }
        if self.seconds <= 0.0 || self.warmup_s < 0.0 {
            return refuse("expected a measured part longer than 0 s");
        }
        self.key_format().map(drop)
    }

    fn key_format(&self) -> Result<KeyFormat, BenchError> {
        KeyFormat::new(self.key_bytes, self.keys).map_err(BenchError::Options)
    }

    /// The bytes of every value.
    pub fn values(&self) -> Arc<Values> {
        Arc::new(Values::new(self.value_size, self.value_kind, self.seed))
    }

    /// What writes the requests.
    ///
    /// # Errors
    /// The keys do not fit their size.
    pub fn encoder(&self, values: Arc<Values>) -> Result<Encoder, BenchError> {
        let format = self.key_format()?;
        Ok(Encoder::new(self.protocol, format, values, self.ttl_s))
    }

    /// The key of number `index`, as bytes.
    ///
    /// # Errors
    /// The keys do not fit their size.
    pub fn key(&self, index: u64) -> Result<Vec<u8>, BenchError> {
        let mut key = Vec::new();
        self.key_format()?.append(&mut key, index);
        Ok(key)
    }

    /// The load of the measured part.
    pub fn plan(&self) -> LoadPlan {
        LoadPlan {
            keys: self.keys,
            distribution: self.distribution,
            mix: Mix {
                gets: self.gets,
                sets: self.sets,
                keys_per_request: self.keys_per_request,
            },
            pipeline: self.pipeline,
            pace: self.pace,
            warmup: Duration::from_secs_f64(self.warmup_s),
            measure: Duration::from_secs_f64(self.seconds),
            seed: self.seed,
        }
    }

    /// How many processors the server can use at most.
    pub fn server_capacity(&self, machine_cores: usize) -> usize {
        let cores = match self.server_cores.len() {
            0 => machine_cores,
            count => count,
        };
        cores.min(self.server_threads).max(1)
    }
}
