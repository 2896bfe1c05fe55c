//! newer
