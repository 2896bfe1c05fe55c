//! memcached
